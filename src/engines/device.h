#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "io/onnx/runtime_ops.h"

namespace argosy::engines {

/// What ONNX Runtime runs graphs on, by one of its execution providers. Another one is another row in devices.cpp.
struct Device {
  std::string_view name;   // "webgpu": its name in commands
  std::string_view title;  // "WebGPU"
  /// Ops of ONNX Runtime's own that it has kernels for, and that are right there.
  RuntimeOps ops;
  bool takes_bfloat16 = false;
  bool rounds_activations = false;   // of products with weights in few bits: to 8 bits, which is faster
  bool multiplies_integers = false;  // DynamicQuantizeLinear and MatMulInteger have kernels that were run
  // Of GroupQueryAttention, where `ops` has it:
  bool turns_in_attention = false;  // the op does the rotary embedding
  bool packs_attention = false;     // queries, keys and values may be one tensor
  bool shares_caches = false;       // caches may be continued in place
  /// As configurations of engines call it ("webgpu"), with what they set for it; empty: engines need no word of it.
  std::string_view provider = {};
  std::span<const std::pair<std::string_view, std::string_view>> provider_options = {};
  /// What the row rests on, for those who use a bundle: ends a sentence; empty: the export's own check runs there.
  std::string_view evidence = {};
};

inline constexpr std::string_view kUsualDevice = "cpu";

std::span<const Device> all_devices();
/// Null if there is none of that name.
const Device* find_device(std::string_view name);
/// "cpu, webgpu, …"
std::string device_names();

}  // namespace argosy::engines
