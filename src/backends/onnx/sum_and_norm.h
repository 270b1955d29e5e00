#pragma once

#include "passes/pass.h"

namespace argosy::onnx {

/// "join-sums-and-norms": an RMS norm of a sum of two tensors becomes one op that gives both,
/// SkipSimplifiedLayerNormalization of ONNX Runtime. After recognise.
Pass join_sums_and_norms();

}  // namespace argosy::onnx
