#pragma once

#include <cstdint>

#include "tensor/source.h"

namespace argosy {

/// How integers with fitted scales are stored.
enum class QuantizedForm : uint8_t {
  kI8,       // i8
  kNibbles,  // u4: 4 bits, plus 8, the first of two in the low half of a byte
  kSwapped,  // u8 of half the last dim: 4 bits, plus 8, the first of two in the high half of a byte
};

/// Symmetric quantisation to 8 or 4 bits in blocks along the last dim, with scales fitted to each block
/// (quantize_block_fitted() has the arithmetic): output 0 are the integers, output 1 the scales [..., last / block],
/// f32 or bf16 (rounded after the integers are chosen). The last dim is a multiple of the block, and even where two
/// values share a byte. The source is f32, f16 or bf16. Streaming a NaN or an infinity is an error.
Result<SourceGroupPtr> quantized_fitted(TensorSourcePtr source, int64_t block, QuantizedForm form, DType scales);

}  // namespace argosy
