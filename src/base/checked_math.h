#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace argosy {

/// Arithmetic on sizes that come from input: nullopt when the result does not fit.
inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// The number of elements of a shape; nullopt if a dim is negative or the product of the non-zero dims overflows (so
/// that no order of multiplication can).
inline std::optional<int64_t> element_count(std::span<const int64_t> shape) {
  int64_t product = 1;
  bool is_empty = false;
  for (int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      is_empty = true;
      continue;
    }
    auto next = checked_mul(product, dim);
    if (!next) return std::nullopt;
    product = *next;
  }
  return is_empty ? 0 : product;
}

}  // namespace argosy
