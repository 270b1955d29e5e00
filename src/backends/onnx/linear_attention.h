#pragma once

#include "passes/pass.h"

namespace argosy::onnx {

/// "use-linear-attention": a scan over tokens that keeps a matrix of keys and values for each head becomes one op,
/// LinearAttention of ONNX Runtime. After normalise.
Pass use_linear_attention();

}  // namespace argosy::onnx
