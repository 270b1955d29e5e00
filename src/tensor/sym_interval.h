#pragma once

#include <cstdint>

#include "tensor/sym.h"

namespace argosy {

__extension__ typedef __int128 Int128;

inline bool fits_int64(Int128 value) { return value >= INT64_MIN && value <= INT64_MAX; }

/// Floor division and its remainder, as Python defines them; b is not zero.
inline Int128 floor_quotient(Int128 a, Int128 b) {
  Int128 quotient = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
}
inline Int128 floor_remainder(Int128 a, Int128 b) { return a - floor_quotient(a, b) * b; }

/// Interval arithmetic on SymRange: each result contains every value the operation can have (mathematical integers; an
/// end that leaves int64 becomes "no bound"). Undefined points, such as division by zero, are left out.
SymRange interval_add(SymRange a, SymRange b);
SymRange interval_mul(SymRange a, SymRange b);
SymRange interval_floor_div(SymRange a, SymRange b);
SymRange interval_mod(SymRange a, SymRange b);
SymRange interval_pow(SymRange base, SymRange exponent);
SymRange interval_min(SymRange a, SymRange b);
SymRange interval_max(SymRange a, SymRange b);
SymRange interval_hull(SymRange a, SymRange b);
/// May be empty: min > max.
SymRange interval_intersect(SymRange a, SymRange b);

inline SymRange interval_of(int64_t value) { return {value, value}; }
inline bool is_empty(SymRange range) { return range.min > range.max; }
/// Exactly one value. The ends of int64 stand for "no bound", so they don't count.
inline bool is_single(SymRange range) {
  return range.min == range.max && range.min != SymRange::kNoMin && range.max != SymRange::kNoMax;
}

}  // namespace argosy
