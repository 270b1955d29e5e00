#include "driver/backends.h"

#include "backends/executorch/quantize.h"
#include "backends/onnx/quantize.h"
#include "base/text.h"
#include "driver/configured_dtype.h"
#include "driver/executorch/export_executorch.h"
#include "driver/onnx/export_onnx.h"
#include "driver/pt2/export_pt2.h"
#include "driver/variants.h"
#include "engines/device.h"

namespace argosy {
namespace {

Result<std::unique_ptr<Export>> export_pt2(const ExportInput& input, const ExportDestination& destination,
                                           const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_pt2(input, destination, options.pt2_hooks, diagnostics);
}

std::vector<std::string> no_arguments(const BackendOptions&) { return {}; }

void add_quantization(std::vector<std::string>& arguments, const onnx::Quantization& how) {
  if (!how.is_wanted()) return;
  arguments.push_back(format("--quantize={}", onnx::quantization_text(how)));
  if (how.is_dynamic) return;
  arguments.push_back(format("--quantize-block={}", onnx::block_of(how)));
  arguments.push_back(format("--quantize-method={}", onnx::name_of(how.method)));
  if (!how.is_symmetric) arguments.emplace_back("--quantize-zero-points");
  if (how.accuracy_level != onnx::kDevicesAccuracy)
    arguments.push_back(format("--accuracy-level={}", how.accuracy_level));
}

std::vector<std::string> onnx_arguments(const BackendOptions& options) {
  std::vector<std::string> arguments;
  if (options.onnx.lowering.opset != onnx::kDefaultOpset)
    arguments.push_back(format("--opset={}", options.onnx.lowering.opset));
  if (options.onnx.lowering.optimize == onnx::Optimize::kOff) arguments.emplace_back("--optimize=off");
  if (options.onnx.lowering.optimize == onnx::Optimize::kSafe) arguments.emplace_back("--optimize=safe");
  if (options.onnx.device != engines::kUsualDevice) arguments.push_back(format("--device={}", options.onnx.device));
  if (options.onnx.weights == onnx::WeightsMode::kLink) arguments.emplace_back("--weights=link");
  if (options.onnx.weights == onnx::WeightsMode::kEmbed) arguments.emplace_back("--weights=embed");
  if (options.onnx.lowering.half == onnx::HalfMode::kMixed) arguments.emplace_back(kMixedFlag);
  if (options.onnx.lowering.half == onnx::HalfMode::kObserved) arguments.emplace_back("--observe-values");
  add_quantization(arguments, options.onnx.lowering.quantization);
  return arguments;
}

void add_linear(std::vector<std::string>& arguments, std::string_view flag, const executorch::LinearQuantization& how) {
  if (how.encoding == executorch::LinearEncoding::kFloat) return;
  arguments.push_back(format("{}={}", flag, executorch::name_of(how.encoding)));
  if (how.group_size >= 0) arguments.push_back(format("{}-group-size={}", flag, how.group_size));
}

std::vector<std::string> executorch_arguments(const BackendOptions& options) {
  std::vector<std::string> arguments;
  const ExecutorchOptions& given = options.executorch;
  const executorch::TaskOptions& task = given.task;
  if (given.lowering.recipe != executorch::Recipe::kXnnpack) arguments.emplace_back("--recipe=portable");
  if (!task.task.empty()) arguments.push_back(format("--task={}", task.task));
  if (task.max_seq_len != 0) arguments.push_back(format("--max-seq-len={}", task.max_seq_len));
  if (!task.custom_sdpa) arguments.emplace_back("--no-custom-sdpa");
  if (!task.custom_kv_cache) arguments.emplace_back("--no-custom-kv-cache");
  if (task.all_logits) arguments.emplace_back("--all-logits");
  if (!task.dynamic_shapes) arguments.emplace_back("--disable-dynamic-shapes");
  add_linear(arguments, "--qlinear", given.lowering.linear);
  add_linear(arguments, "--qlinear-encoder", given.lowering.encoder_linear);
  if (given.lowering.convolution == executorch::ConvolutionEncoding::k8a8w) arguments.emplace_back("--qconv=8a8w");
  const executorch::EmbeddingQuantization& embedding = given.lowering.embedding;
  if (embedding.encoding != executorch::EmbeddingEncoding::kFloat) {
    arguments.emplace_back(embedding.encoding == executorch::EmbeddingEncoding::k8w ? "--qembedding=8w"
                                                                                    : "--qembedding=4w");
    if (embedding.group_size != 0) arguments.push_back(format("--qembedding-group-size={}", embedding.group_size));
  }
  if (given.data == executorch::DataPlace::kBeside) arguments.emplace_back("--ptd");
  if (!given.shape.empty()) arguments.push_back(format("--shape={}", given.shape));
  return arguments;
}

/// What a bundle says that it was made with: what the user asked for, and what is not a default of the backend.
ExportInput with_options(ExportInput input, const std::vector<std::string>& arguments) {
  input.options.insert(input.options.end(), arguments.begin(), arguments.end());
  return input;
}

ExportInput with_onnx_options(const ExportInput& input, const BackendOptions& options) {
  std::vector<std::string> arguments = onnx_arguments(options);
  if (options.onnx.engine != OnnxOptions().engine)
    arguments.insert(arguments.begin(), format("--for={}", options.onnx.engine));
  return with_options(input, arguments);
}

Result<std::unique_ptr<Export>> export_onnx(const ExportInput& input, const ExportDestination& destination,
                                            const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_onnx(with_onnx_options(input, options), destination, options.onnx, diagnostics);
}

Result<std::unique_ptr<Export>> export_onnx_variants(std::vector<ExportVariant> variants,
                                                     const ExportDestination& destination, Diagnostics& diagnostics) {
  std::vector<OnnxVariant> wanted;
  for (ExportVariant& each : variants)
    wanted.push_back(
        {std::move(each.name), with_onnx_options(each.input, each.options), each.options.onnx, each.is_kept});
  return prepare_onnx_variants(std::move(wanted), destination, diagnostics);
}

Result<std::unique_ptr<Export>> export_executorch(const ExportInput& input, const ExportDestination& destination,
                                                  const BackendOptions& options, Diagnostics& diagnostics) {
  return prepare_executorch(with_options(input, executorch_arguments(options)), destination, options.executorch,
                            diagnostics);
}

constexpr Backend kBackends[] = {
    // Few of ExecuTorch's kernels take bfloat16.
    {"executorch", ".pte", "float32", export_executorch, executorch_arguments, true},
    // ONNX Runtime's CPU kernels have no bfloat16.
    {"onnx", ".onnx", "float32", export_onnx, onnx_arguments, false, export_onnx_variants},
    {"pt2", ".pt2", "auto", export_pt2, no_arguments},
};

}  // namespace

std::span<const Backend> all_backends() { return kBackends; }

const Backend* find_backend(std::string_view name) {
  for (const Backend& backend : kBackends) {
    if (backend.name == name) return &backend;
  }
  return nullptr;
}

Result<std::string> export_dtype(const Backend& backend, const std::filesystem::path& model, const std::string& asked) {
  if (asked != "auto" || backend.dtype_for_bfloat16 == "auto") return asked;
  ARGOSY_TRY(std::string dtype, configured_dtype(model));
  return dtype == "bfloat16" ? std::string(backend.dtype_for_bfloat16) : asked;
}

}  // namespace argosy
