#pragma once

#include <cstdint>

#include "io/onnx/runtime_ops.h"

namespace argosy::onnx {

inline constexpr int kMinOpset = 18, kMaxOpset = 24, kDefaultOpset = 22;
/// The first with RMSNormalization and RotaryEmbedding.
inline constexpr int kOpsetOfNorms = 23;

enum class Optimize : uint8_t {
  kOff,
  kSafe,    // constants are folded, equal nodes merged; ONNX's own ops only
  kEngine,  // also what the engine has beyond ONNX
};

struct LoweringOptions {
  int opset = kDefaultOpset;
  Optimize optimize = Optimize::kEngine;
  /// Ops of ONNX Runtime's own (com.microsoft) that may be used, where they are faster.
  RuntimeOps runtime_ops = {};
  /// Shorter rows of a batch are filled up at their end, and caches may leave the filling out.
  bool pads_at_end = false;
  /// Tokens that a text has at most, the engine counting their positions from 0; 0: nobody knows.
  int64_t longest_text = 0;
  /// Weights may be joined to new ones, which no file of the checkpoint has.
  bool joins_weights = false;
  /// GroupQueryAttention takes queries, keys and values as one tensor, too.
  bool packs_attention = false;
};

/// Where weights that are not small go.
enum class WeightsMode : uint8_t {
  kCopy,   // into one data file beside the models
  kLink,   // unchanged data of a checkpoint's file stays there, linked into the bundle; the rest as kCopy
  kEmbed,  // into the models
};

}  // namespace argosy::onnx
