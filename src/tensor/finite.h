#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace argosy {

/// Whether one of the elements is NaN or infinite. Always false for dtypes that have neither, and for complex ones.
/// Several GB a second; the bytes need no alignment.
bool has_non_finite(DType dtype, std::span<const std::byte> bytes);

}  // namespace argosy
