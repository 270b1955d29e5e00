#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "backends/onnx/document.h"
#include "tensor/dtype.h"

namespace argosy::onnx {

/// Which element types ONNX Runtime's CPU kernel of an op takes.
struct KernelTypes {
  std::string_view op;
  uint64_t taken = 0;           // bit of each DType
  size_t first = 0, count = 0;  // the inputs that have this type; a count of 0 means all from `first` on
  bool keeps_type = true;       // the (first) result has it too
};

/// The row of an op; null: every type is taken, as far as is known.
const KernelTypes* kernel_types(std::string_view op);

/// The type to compute with in place of one that a kernel does not take; the type itself if there is none (ONNX Runtime
/// itself widens f16). No CPU kernel takes bf16: `keeps_bf16` says that the model is for other engines.
DType kernel_type(const KernelTypes& types, DType dtype, bool keeps_bf16);

/// The element type of an op's first result.
DType result_type(std::string_view op, std::span<const DType> inputs, const std::vector<Attribute>& attributes);

/// TensorProto.DataType of a type; 0 where ONNX has none.
int32_t onnx_type(DType dtype);

}  // namespace argosy::onnx
