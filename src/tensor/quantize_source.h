#pragma once

#include <cstdint>
#include <memory>

#include "tensor/quantize.h"
#include "tensor/row_quantizer.h"
#include "tensor/source.h"

namespace argosy {

/// How the integers of blocks are stored.
enum class QuantizedForm : uint8_t {
  kI8,       // i8, minus 128: of 8 bits
  kNibbles,  // u4: of 4 bits, the first of two in the low half of a byte
  kSwapped,  // u8 of half the last dim: of 4 bits, the first of two in the high half of a byte
  kBlocks,   // u8 [..., blocks, bytes of a block]: of 4 or 8 bits, the first of two in the low half of a byte
};

struct BlockQuantization {
  BlockMethod method;
  int64_t block = 32;  // values that share a scale, along the last dim
  QuantizedForm form = QuantizedForm::kBlocks;
  /// Quantises in the place of the method, and says how many bits there are and whether there are zero points. Of
  /// kBlocks alone. Null: none does.
  std::shared_ptr<const RowQuantizer> own = nullptr;
};

/// Quantises in blocks along the last dim (tensor/quantize.h has the arithmetic). Output 0 are the integers, output 1
/// the scales [..., blocks], f32, f16 or bf16. If the method is not symmetric, output 2 are the zero points: u8 [...,
/// bytes of the blocks' zero points], packed as the integers are. kBlocks fills the last block of a row up with zeros
/// (kLargest: with bytes of zero), for other forms the last dim is a multiple of the block. The source is f32, f16 or
/// bf16. Streaming a NaN or an infinity is an error, and so is what a quantizer of others gives that does not fit.
Result<SourceGroupPtr> quantized_blocks(TensorSourcePtr source, const BlockQuantization& how);

}  // namespace argosy
