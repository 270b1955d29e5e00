#pragma once

#include "passes/pass.h"

namespace argosy {

/// "normalise": one op for one thing, with explicit arguments, and no ops that change nothing. Runs after
/// functionalise, so that copies can go. Afterwards, of what several ops can say, a backend meets only:
///
///   cast            to.dtype(self, dtype), to another dtype
///   shape           reshape.default(self, shape): the target is the type of the result, `shape` may hold one -1;
///                   unsqueeze.default; squeeze.dims, dims of size 1 counted from the front;
///                   expand.default without -1
///   order of dims   permute.default, dims counted from the front, not the identity
///   parts           select.int, slice.Tensor, split_with_sizes.default (numbers, or values as given); chunk.default
///                   only if the parts' sizes are not known
///   joining         cat.default, dim counted from the front, at least two tensors (a single one if it is cast);
///                   repeat.default
///   creation        full.default(size, fill_value, dtype) with its dtype; arange.start_step with start, step and dtype
///   arithmetic      add, sub, mul (.Tensor and .Scalar), rsub.Scalar, div.Tensor, div.Scalar, div.Tensor_mode and
///                   div.Scalar_mode with a mode, pow.*, maximum, minimum, clamp.default, clamp.Tensor, neg, abs, sign;
///                   no power that is a product, a root or a reciprocal, no sum with 0 of integers, no product with 1
///   comparison      eq, ne, lt, le, gt, ge (.Tensor and .Scalar)
///   logic           bitwise_and, bitwise_or, bitwise_xor (.Tensor and .Scalar), bitwise_not; shifts as
///                   bitwise_left_shift and bitwise_right_shift (.Tensor and .Tensor_Scalar)
///   choice          where.self of a bool, with both branches in the dtype of the result; masked_fill
///   reductions      sum.dim_IntList, mean.dim, amax and amin with all their dims by name, and other reductions, of
///                   tensors that have dims; prod.default, softmax and log_softmax in the dtype of their operand; std,
///                   var, std_mean, var_mean only as .correction, over a number of elements that is not known
///   numbers         rounding and tests for NaN and infinities only of floats
///   padding         constant_pad_nd.default; pad.default of other modes; convolutions with padding as numbers
///   indexing        index.Tensor, index_put.default, scatter.src, scatter.value, scatter_add.default, values in the
///                   dtype that they are written into; scatter_reduce.two of prod, amax, amin, with include_self (and
///                   means of integers, unchanged); unfold.default of a dim that is not negative, roll.default of
///                   dims
///   resizing        upsample_….vec and _upsample_….vec; grid_sampler_2d, grid_sampler_3d
///   order           sort.default, sort.stable, topk.default
///
/// Every other op is left as it is: linear, matmul, scaled_dot_product_attention, norms, convolutions, activations,
/// embedding, einsum and so on stay whole. Gone are wrap_with_set_grad_enabled and
/// wrap_with_autocast (their bodies are part of the graph), assertions, detach, alias, clone, contiguous,
/// lift_fresh_copy, dropout of an evaluation; stack, hstack, vstack, column_stack, unbind, narrow, tile,
/// repeat_interleave.self_int, meshgrid, broadcast_tensors; eye, diag, diag_embed, diagonal_scatter, trace; fliplr,
/// flipud, rot90, channel_shuffle, diff; outer, inner, dot, mv, addmv, addbmm, chain_matmul, cross, kron, tensordot
/// (over numbers); glu, square, addcmul, addcdiv (where shapes allow it), logical_*, argsort, mse_loss; sum, mean, max
/// and min without dims; sgn of real numbers; batch_norm by its own batch's statistics; random numbers other than rand
/// and randn; scatter.reduce, grid_sampler, upsample_….default; all synonyms (multiply, concat, clip, __and__,
/// _unsafe_index, …); and slices, views and expands that change nothing.
Pass normalise();

}  // namespace argosy
