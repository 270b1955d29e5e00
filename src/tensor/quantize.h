#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace argosy {

/// How a block of floats becomes integers that share a scale. Numbers are in settings of passes: add at the end.
enum class QuantizeMethod : uint8_t {
  kFitted,    // the scale is fitted to the integers: torchao's "hqq_scale_only"
  kLargest,   // the value farthest from zero is exact: ONNX Runtime's "default"
  kNearest,   // the range of values is the range of integers: ONNX Runtime's "rtn"
  kWeighted,  // scale and zero point are searched for, large values count more: ONNX Runtime's "k_quant"
  kNormal,    // integers name one of 16 floats, the scale is the largest magnitude: NF4, as ONNX Runtime's MatMulBnb4
};

/// What the integers of a block stand for: (integer - zero) * scale; of kNormal a float of its table, times the scale.
struct BlockScale {
  float scale = 0;  // a NaN if the block holds a NaN or an infinity
  uint8_t zero = 0;
};

struct BlockMethod {
  QuantizeMethod method = QuantizeMethod::kLargest;
  int bits = 4;              // 2 to 8; of kNormal 4
  bool is_symmetric = true;  // the zero point is 2^(bits-1); kFitted and kNormal are always so, kWeighted never
  /// What scales are stored as: f32, or f16 and bf16, which kLargest rounds them to before it chooses integers.
  DType scales = DType::kF32;
};

/// Quantises one block to unsigned integers of `bits` bits. A block has a multiple of 8 values (kFitted: any
/// number; kWeighted: at most 256).
/// The same bits on every processor, in the default float mode, and for all but kFitted the same bits as ONNX Runtime's
/// quantizer. `out` has the size of `in`.
BlockScale quantize_block(std::span<const float> in, const BlockMethod& how, std::span<uint8_t> out);

/// Quantises one block symmetrically to signed integers of `bits` bits (2 to 8): out[i] = in[i] / scale rounded half to
/// even, limited to [-2^(bits-1), 2^(bits-1) - 1]. The scale begins at absmax / 2^(bits-1) and is then fitted, at most
/// 20 times: the one that is best for these integers (least squares), integers for it, and so on until it changes by
/// less than a hundred-thousandth. No scale is below 2^-23. Returns the scale, or a NaN if the block holds a NaN or an
/// infinity. `out` has the size of `in`, which is any.
float quantize_block_fitted(std::span<const float> in, int bits, std::span<int8_t> out);

}  // namespace argosy
