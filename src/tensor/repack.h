#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy {

/// Integers, scales and zero points of a matrix [rows, width] that a checkpoint stores in groups along its rows, as
/// kernels for such weights take them: QuantizedForm::kBlocks of tensor/quantize_source.h.
struct RepackedWeight {
  TensorSourcePtr integers;     // u8 [rows, blocks, bytes of a block]
  TensorSourcePtr scales;       // [rows, blocks], of the dtype that is asked for
  TensorSourcePtr zero_points;  // u8 [rows, bytes]; null: 2^(bits - 1)
  int bits = 0;                 // 4 or 8
  int64_t block = 0;            // values that share a scale
};

/// Whether a source is a matrix of dequantised integers, or rows of several ones, and no more than that.
bool is_dequantized(const TensorSource& source);

/// What a dequantised matrix is made of, only arranged anew: (integer - zero point) * scale are its elements, bit for
/// bit in f32. nullopt if kernels cannot have it so: other bits than 4 and 8, groups that are not 16, 32, 64, 128 or
/// 256 columns each and all of that size, columns in another order, scales that the dtype does not hold exactly.
Result<std::optional<RepackedWeight>> repacked(const TensorSourcePtr& source, DType scales);

}  // namespace argosy
