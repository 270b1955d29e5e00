#include "base/text.h"
#include "engines/device.h"

namespace argosy::engines {
namespace {

using enum RuntimeOp;
using enum DType;
using Option = std::pair<std::string_view, std::string_view>;

constexpr RuntimeOps kNormsAndRotary = RuntimeOps()
                                           .with(kRotaryEmbedding, {kF32, kF16})
                                           .with(kSimplifiedLayerNormalization, {kF32, kF16})
                                           .with(kSkipSimplifiedLayerNormalization, {kF32, kF16});

// Kernels of onnxruntime 1.31, measured by the checks of exports and tests/bench.
constexpr RuntimeOps kCpuOps = kNormsAndRotary.with(kFusedMatMul, {kF32})
                                   .with(kGroupQueryAttention, {kF32, kF16})
                                   .with(kLinearAttention, {kF32})
                                   .with(kMixtureOfExperts, {kF32})
                                   .with(kMultiHeadAttention, {kF32})
                                   .with(kMatMulBnb4, {kF32, kF16});  // float16 is widened

// Kernels of onnxruntime-webgpu 1.27, run by tests/sweeps webgpu. FusedMatMul has none: each would be a copy to the CPU
// and back. GroupQueryAttention is wrong for prompts on devices whose subgroups have 4 lanes: its shader takes 8 keys
// in a step and goes on by 4 (docs/decisions/0019-devices.md).
constexpr RuntimeOps kWebgpuOps = kNormsAndRotary.with(kLinearAttention, {kF32});
// Graphs have nodes without kernels there, on sizes; so calls cannot be recorded and played back.
constexpr Option kWebgpuOptions[] = {{"enableGraphCapture", "0"}, {"validationMode", "basic"}};

// From ONNX Runtime's docs/OperatorKernels.md (1.30); float32 has no GroupQueryAttention there.
constexpr RuntimeOps kCudaOps = kNormsAndRotary.with(kFusedMatMul, {kF32, kF16})
                                    .with(kGroupQueryAttention, {kF16})
                                    .with(kLinearAttention, {kF32})
                                    .with(kMatMulBnb4, {kF32, kF16});
constexpr Option kCudaOptions[] = {{"enable_cuda_graph", "0"}};

// From the same list, and what onnxruntime-genai's own builder writes for this provider: GroupQueryAttention in float16
// only, with neither the rotary embedding nor one tensor of queries, keys and values.
constexpr RuntimeOps kDmlOps = kNormsAndRotary.with(kFusedMatMul, {kF32, kF16}).with(kGroupQueryAttention, {kF16});
constexpr Option kDmlOptions[] = {{"enable_graph_capture", "0"}};

constexpr std::string_view kByLists =
    "which ops it has is known from ONNX Runtime's documentation; nothing was run on such a device";

constexpr Device kDevices[] = {
    {.name = kUsualDevice,
     .title = "the CPU",
     .ops = kCpuOps,
     .takes_bfloat16 = true,  // as weights; kernels widen them
     .rounds_activations = true,
     .multiplies_integers = true,
     .turns_in_attention = true,
     .packs_attention = true,
     .shares_caches = true},
    {.name = "webgpu",
     .title = "WebGPU",
     .ops = kWebgpuOps,
     .rounds_activations = true,
     .provider = "webgpu",
     .provider_options = kWebgpuOptions,
     .evidence = "other models of this project were run on its kernels, this one was not"},
    {.name = "cuda",
     .title = "CUDA",
     .ops = kCudaOps,
     .takes_bfloat16 = true,
     .turns_in_attention = true,
     .packs_attention = true,
     .shares_caches = true,
     .provider = "cuda",
     .provider_options = kCudaOptions,
     .evidence = kByLists},
    {.name = "dml",
     .title = "DirectML",
     .ops = kDmlOps,
     .shares_caches = true,
     .provider = "dml",
     .provider_options = kDmlOptions,
     .evidence = kByLists},
};

}  // namespace

std::span<const Device> all_devices() { return kDevices; }

const Device* find_device(std::string_view name) {
  for (const Device& device : kDevices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

std::string device_names() {
  std::vector<std::string> names;
  for (const Device& device : kDevices) names.emplace_back(device.name);
  return join(names, ", ");
}

}  // namespace argosy::engines
