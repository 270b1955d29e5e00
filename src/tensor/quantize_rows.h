#pragma once

#include "tensor/source.h"

namespace argosy {

/// A matrix in 8 bits, a scale for each row: (value - zero point) * scale.
struct QuantizedRows {
  TensorSourcePtr values;       // i8 or u8, [rows, width]
  TensorSourcePtr scales;       // f32 [rows]
  TensorSourcePtr zero_points;  // u8 [rows]; null if values are signed: 0
};

/// Signed: the value farthest from zero is 127 or -127. Unsigned: the range of values, with zero in it, is 0 to 255.
/// Bit for bit what ONNX Runtime's quantize_dynamic does by channel. Scales are found by one read of the source when
/// they are first needed, and kept: four or five bytes for each row. After that any box of values can be read, in any
/// order. The source is f32, f16 or bf16 of two dims. Reading a NaN or an infinity is an error.
Result<QuantizedRows> quantized_rows(const TensorSourcePtr& source, bool is_signed);

}  // namespace argosy
