#pragma once

#include <cstdint>
#include <span>

namespace argosy {

/// Quantises one block symmetrically: scale = absmax / 127, out[i] = in[i] / scale rounded half to even, in f32
/// arithmetic, so that out is in [-127, 127] and out[i] * scale is in[i] to within half a scale. The same bits on every
/// processor, in the default float mode. A block of zeros gets scale 1, and a block so small that its scale would be
/// subnormal gets FLT_MIN: no scale is zero or subnormal, and zeros come back as exact zeros. Returns the scale, or a
/// NaN if the block holds a NaN or an infinity. `out` has the size of `in`.
float quantize_block_int8(std::span<const float> in, std::span<int8_t> out);

/// Quantises one block symmetrically to signed integers of `bits` bits (2 to 8): out[i] = in[i] / scale rounded half to
/// even, limited to [-2^(bits-1), 2^(bits-1) - 1]. The scale begins at absmax / 2^(bits-1) and is then fitted, at most
/// 20 times: the one that is best for these integers (least squares), integers for it, and so on until it changes by
/// less than a hundred-thousandth. This is torchao's "hqq_scale_only" for one block. No scale is below 2^-23. The same
/// bits on every processor, in the default float mode. Returns the scale, or a NaN if the block holds a NaN or an
/// infinity. `out` has the size of `in`.
float quantize_block_fitted(std::span<const float> in, int bits, std::span<int8_t> out);

}  // namespace argosy
