#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/program.h"
#include "tensor/dtype.h"

namespace argosy {

/// A weight of a live model. Its bytes are read in place: they must outlive every use of what is made from them.
struct LiveTensor {
  std::string name;  // in the graph's signature
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // row-major
  std::string identity;              // equal for tensors of equal bytes, which are written once
};

/// Gives a program's weights the bytes of the tensors of the same names. Floating-point ones are converted to the dtype
/// that they have in the graph.
Status attach_live(Program& program, std::span<const LiveTensor> tensors);

}  // namespace argosy
