#pragma once

#include <cstdint>
#include <limits>

#include "ir/argument.h"

namespace argosy {

/// The largest or the smallest number of a dtype: the neutral element of a minimum or a maximum.
inline Argument extreme_of(DType dtype, bool is_largest) {
  if (kind_of(dtype) == DTypeKind::kFloat) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return is_largest ? kInfinity : -kInfinity;
  }
  const int bits = bits_of(dtype);
  if (kind_of(dtype) == DTypeKind::kUnsigned) return is_largest ? (int64_t{1} << bits) - 1 : int64_t{0};
  const int64_t most = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
  return is_largest ? most : -most - 1;
}

}  // namespace argosy
