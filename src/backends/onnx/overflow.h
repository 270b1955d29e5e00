#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy::onnx {

/// Whether a tensor is f16 by a conversion from a wider dtype, so that values may have become infinite.
bool may_overflow(const TensorSource& source);

/// How many of these values of f16 are infinite.
uint64_t infinities(std::span<const std::byte> block);

/// How many values of the tensor were finite before they were converted to f16 and are infinite now. `infinite` is the
/// number of infinite ones now, where it is known. Reads what was converted once more if there are any.
Result<uint64_t> count_overflows(const TensorSource& source, uint64_t infinite);
Result<uint64_t> count_overflows(const TensorSource& source);

}  // namespace argosy::onnx
