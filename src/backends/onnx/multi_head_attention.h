#pragma once

#include "passes/pass.h"

namespace argosy::onnx {

/// "use-multi-head-attention": attention without a cache, of queries, keys and values that had tokens before heads, as
/// projections give them, becomes one op: MultiHeadAttention of ONNX Runtime. Biases of the projections and a factor of
/// the queries become part of it. For f32: the op has no other kernel for processors. After recognise.
Pass use_multi_head_attention();

}  // namespace argosy::onnx
