#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace argosy {

/// Whether unpack_elements() turns one into the other: u4 and u2 into u8, i4 and i2 into i8, f4e2m1 into f8e4m3fn
/// (which holds all its values). cast_elements() and converted() go through it.
bool can_unpack(DType from, DType to);

/// Elements of 2 or 4 bits, packed low bits first, as elements of a byte each. `out` has 8 / bits bytes for each of
/// `in`, and must not overlap it.
void unpack_elements(DType from, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace argosy
