#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy {

// What quantised checkpoints need beyond the sources of tensor/source.h. The rules there hold here too: what does not
// fit is an error when a recipe is built, and reading takes a bounded scratch.

/// How stored values become floats.
struct Dequantization {
  /// For each dim of the values, how many along it share a scale; the last block of a dim may be cut short.
  std::vector<int64_t> block;
  /// Added to every zero point. Without a tensor of zero points it is the zero point itself.
  int64_t zero = 0;
  /// If not 0, sums of zero points and `zero` are taken modulo this.
  int64_t zero_modulus = 0;
  DType dtype = DType::kF32;  // of the result: f32, f16 or bf16
};

/// (value - zero point) * scale, in f32, rounded once to the dtype. Scales and zero points have the rank of the values
/// and, in each dim, one element for each block. `zero_points` may be null. Values, scales and zero points are of any
/// dtype that casts to f32.
Result<TensorSourcePtr> dequantized(TensorSourcePtr values, TensorSourcePtr scales, TensorSourcePtr zero_points,
                                    Dequantization how);

/// What dequantized() was given.
struct DequantizedParts {
  TensorSourcePtr values, scales, zero_points;  // the last may be null
  Dequantization how;
};
/// nullopt: the source is not what dequantized() made.
std::optional<DequantizedParts> dequantized_parts(const TensorSource& source);

/// The same bits as elements of another dtype. If those are smaller, the result has one dim more, for the elements that
/// each one becomes, low bits first: i32[2, 3] is u4[2, 3, 8].
Result<TensorSourcePtr> reinterpreted(TensorSourcePtr source, DType dtype);

/// Elements of the last dim by index: result[..., i] = source[..., indices[i]]. The indices are i32 or i64 in one dim,
/// or as looked_up() takes them. One that is out of range is an error when it is read.
Result<TensorSourcePtr> gathered(TensorSourcePtr source, TensorSourcePtr indices);

/// The same for a table, of one dim and at most 256 elements, and indices of a byte: many of them, not held at once.
Result<TensorSourcePtr> looked_up(const TensorSourcePtr& table, const TensorSourcePtr& codes);

/// value * scale + offset of an f32 source, in f32, rounded after each of the two and once to the dtype.
Result<TensorSourcePtr> affine(const TensorSourcePtr& source, float scale, float offset, DType dtype);

/// Elements of a dtype of 2 or 4 bits in a byte each (tensor/unpack.h); what converted() does with these dtypes.
Result<TensorSourcePtr> unpacked(TensorSourcePtr source, DType dtype);

}  // namespace argosy
