#include "tensor/sym_interval.h"

#include <algorithm>
#include <array>
#include <optional>

namespace argosy {
namespace {

/// An end of a range: finite, or infinite with that sign.
struct End {
  Int128 value = 0;
  int infinite = 0;
  int sign() const { return infinite != 0 ? infinite : (value > 0) - (value < 0); }
};

End low_end(SymRange range) { return range.min == SymRange::kNoMin ? End{0, -1} : End{range.min, 0}; }
End high_end(SymRange range) { return range.max == SymRange::kNoMax ? End{0, 1} : End{range.max, 0}; }

bool less(End a, End b) {
  if (a.infinite != b.infinite) return a.infinite < b.infinite;
  return a.infinite == 0 && a.value < b.value;
}

int64_t clamp(End end) {
  if (end.infinite < 0 || (end.infinite == 0 && end.value < INT64_MIN)) return INT64_MIN;
  if (end.infinite > 0 || end.value > INT64_MAX) return INT64_MAX;
  return static_cast<int64_t>(end.value);
}

SymRange make_range(End low, End high) { return {clamp(low), clamp(high)}; }

End add(End a, End b) {
  if (a.infinite != 0) return a;
  if (b.infinite != 0) return b;
  return {a.value + b.value, 0};
}

End mul(End a, End b) {
  if (a.sign() == 0 || b.sign() == 0) return {};
  if (a.infinite != 0 || b.infinite != 0) return {0, a.sign() * b.sign()};
  return {a.value * b.value, 0};
}

/// The limit of the quotient; nullopt at infinity by infinity, whose limits the other corners already enclose.
std::optional<End> floor_div(End a, End b) {
  if (b.infinite != 0) {
    if (a.infinite != 0) return std::nullopt;
    return End{a.sign() * b.infinite < 0 ? -1 : 0, 0};
  }
  if (a.infinite != 0) return End{0, a.infinite * (b.value > 0 ? 1 : -1)};
  return End{floor_quotient(a.value, b.value), 0};
}

/// The divisors of one sign.
SymRange floor_div_by_sign(SymRange a, SymRange b) {
  std::optional<End> low;
  std::optional<End> high;
  for (End x : {low_end(a), high_end(a)}) {
    for (End y : {low_end(b), high_end(b)}) {
      auto corner = floor_div(x, y);
      if (!corner) continue;
      if (!low || less(*corner, *low)) low = corner;
      if (!high || less(*high, *corner)) high = corner;
    }
  }
  if (!low) return {};
  return make_range(*low, *high);
}

SymRange mod_by_positive(SymRange a, SymRange b) {
  if (a.min >= 0 && a.max != SymRange::kNoMax && a.max < b.min) return a;
  int64_t high = b.max == SymRange::kNoMax ? SymRange::kNoMax : b.max - 1;
  if (a.min >= 0) high = std::min(high, a.max);
  return {0, high};
}

SymRange mod_by_negative(SymRange a, SymRange b) {
  if (a.max <= 0 && a.min != SymRange::kNoMin && a.min > b.max) return a;
  int64_t low = b.min == SymRange::kNoMin ? SymRange::kNoMin : b.min + 1;
  if (a.max <= 0) low = std::max(low, a.min);
  return {low, 0};
}

/// base^exponent for exponent >= 0, infinite when it leaves int64.
End power(End base, int64_t exponent) {
  End result{1, 0};
  while (exponent > 0) {
    if (exponent & 1) result = mul(result, base);
    exponent >>= 1;
    if (exponent > 0) base = mul(base, base);
    // Past int64 only the sign matters, and 128 bits must not overflow.
    for (End* end : {&result, &base}) {
      if (end->infinite == 0 && !fits_int64(end->value)) *end = End{0, end->sign()};
    }
  }
  return result;
}

}  // namespace

SymRange interval_add(SymRange a, SymRange b) {
  return make_range(add(low_end(a), low_end(b)), add(high_end(a), high_end(b)));
}

SymRange interval_mul(SymRange a, SymRange b) {
  std::array corners = {mul(low_end(a), low_end(b)), mul(low_end(a), high_end(b)), mul(high_end(a), low_end(b)),
                        mul(high_end(a), high_end(b))};
  return make_range(*std::min_element(corners.begin(), corners.end(), less),
                    *std::max_element(corners.begin(), corners.end(), less));
}

SymRange interval_floor_div(SymRange a, SymRange b) {
  bool has_positive = b.max > 0;
  bool has_negative = b.min < 0;
  SymRange positive = has_positive ? floor_div_by_sign(a, {std::max<int64_t>(b.min, 1), b.max}) : SymRange{};
  SymRange negative = has_negative ? floor_div_by_sign(a, {b.min, std::min<int64_t>(b.max, -1)}) : SymRange{};
  if (has_positive && has_negative) return interval_hull(positive, negative);
  return has_positive ? positive : negative;
}

SymRange interval_mod(SymRange a, SymRange b) {
  bool has_positive = b.max > 0;
  bool has_negative = b.min < 0;
  SymRange positive = has_positive ? mod_by_positive(a, {std::max<int64_t>(b.min, 1), b.max}) : SymRange{};
  SymRange negative = has_negative ? mod_by_negative(a, {b.min, std::min<int64_t>(b.max, -1)}) : SymRange{};
  if (has_positive && has_negative) return interval_hull(positive, negative);
  return has_positive ? positive : negative;
}

SymRange interval_pow(SymRange base, SymRange exponent) {
  if (exponent.min < 0) return {};
  if (exponent.min == exponent.max && exponent.max != SymRange::kNoMax) {
    int64_t n = exponent.min;
    End low = power(low_end(base), n);
    End high = power(high_end(base), n);
    if (n % 2 != 0 || base.min >= 0) return make_range(low, high);
    if (base.max <= 0) return make_range(high, low);
    return make_range(End{n == 0 ? 1 : 0, 0}, less(low, high) ? high : low);
  }
  if (base.min < 0) return {};
  End low = base.min >= 1 ? power(low_end(base), exponent.min) : End{};
  if (base.max <= 1) return make_range(low, End{1, 0});
  End high = exponent.max == SymRange::kNoMax ? End{0, 1} : power(high_end(base), exponent.max);
  return make_range(low, high);
}

SymRange interval_min(SymRange a, SymRange b) { return {std::min(a.min, b.min), std::min(a.max, b.max)}; }
SymRange interval_max(SymRange a, SymRange b) { return {std::max(a.min, b.min), std::max(a.max, b.max)}; }
SymRange interval_hull(SymRange a, SymRange b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
SymRange interval_intersect(SymRange a, SymRange b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

}  // namespace argosy
