#pragma once

#include <cstdint>

namespace argosy::onnx {

inline constexpr int kMinOpset = 18, kMaxOpset = 24, kDefaultOpset = 22;

struct LoweringOptions {
  int opset = kDefaultOpset;
  bool optimize = true;
};

/// Where weights that are not small go.
enum class WeightsMode : uint8_t {
  kCopy,   // into one data file beside the models
  kLink,   // unchanged data of a checkpoint's file stays there, linked into the bundle; the rest as kCopy
  kEmbed,  // into the models
};

}  // namespace argosy::onnx
