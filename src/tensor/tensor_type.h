#pragma once

#include <vector>

#include "tensor/dtype.h"
#include "tensor/sym.h"

namespace argosy {

/// Type of a tensor value in a graph. Sizes are symbolic; an empty `strides` means row-major contiguous.
struct TensorType {
  DType dtype = DType::kF32;
  std::vector<SymExpr> shape;
  std::vector<SymExpr> strides;

  friend bool operator==(const TensorType&, const TensorType&) = default;
};

}  // namespace argosy
