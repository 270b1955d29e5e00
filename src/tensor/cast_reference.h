#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

// For tests only: conversions written for clarity, element by element through long double (which holds every value
// of every type exactly), and sharing nothing with cast.cpp.
namespace argosy::reference {

static_assert(LDBL_MANT_DIG >= 64, "long double must hold all 64-bit integers");

struct FloatFormat {
  int exponent_bits;
  int fraction_bits;
};

inline FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return {11, 52};
    case DType::kF32: return {8, 23};
    case DType::kF16: return {5, 10};
    case DType::kF8E5M2: return {5, 2};
    default: return {8, 7};  // bf16
  }
}

inline bool is_nan(uint64_t bits, FloatFormat f) {
  uint64_t fraction = bits & ((uint64_t{1} << f.fraction_bits) - 1);
  uint64_t exponent = (bits >> f.fraction_bits) & ((uint64_t{1} << f.exponent_bits) - 1);
  return exponent == (uint64_t{1} << f.exponent_bits) - 1 && fraction != 0;
}

inline long double decode(uint64_t bits, FloatFormat f) {
  int64_t fraction = static_cast<int64_t>(bits & ((uint64_t{1} << f.fraction_bits) - 1));
  int exponent = static_cast<int>((bits >> f.fraction_bits) & ((uint64_t{1} << f.exponent_bits) - 1));
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  bool is_negative = (bits >> (f.fraction_bits + f.exponent_bits)) & 1;
  long double value;
  if (exponent == (1 << f.exponent_bits) - 1) {
    value = INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<long double>(fraction), 1 - bias - f.fraction_bits);
  } else {
    value = std::ldexp(static_cast<long double>(fraction + (int64_t{1} << f.fraction_bits)),
                       exponent - bias - f.fraction_bits);
  }
  return is_negative ? -value : value;
}

inline uint64_t encode(long double value, FloatFormat f) {
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  uint64_t sign = std::signbit(value) ? uint64_t{1} << (f.fraction_bits + f.exponent_bits) : 0;
  uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << f.fraction_bits;
  long double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | infinity;
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude is in [2^(exponent - 1), 2^exponent)
  int unit = std::max(exponent - 1, 1 - bias) - f.fraction_bits;
  long double units = std::nearbyint(std::ldexp(magnitude, -unit));  // ties to even
  uint64_t count = static_cast<uint64_t>(units);
  // A count that reached the next power of two carries into the exponent by itself.
  uint64_t bits = count < (uint64_t{1} << f.fraction_bits)
                      ? count
                      : (static_cast<uint64_t>(unit + f.fraction_bits + bias - 1) << f.fraction_bits) + count;
  return sign | std::min(bits, infinity);
}

// Sign, quiet bit, and the payload's top bits.
inline uint64_t convert_nan(uint64_t bits, FloatFormat from, FloatFormat to) {
  uint64_t sign = (bits >> (from.fraction_bits + from.exponent_bits)) & 1;
  uint64_t fraction = bits & ((uint64_t{1} << from.fraction_bits) - 1);
  int shift = to.fraction_bits - from.fraction_bits;
  fraction = shift >= 0 ? fraction << shift : fraction >> -shift;
  fraction |= uint64_t{1} << (to.fraction_bits - 1);
  uint64_t exponent = (uint64_t{1} << to.exponent_bits) - 1;
  return (sign << (to.fraction_bits + to.exponent_bits)) | (exponent << to.fraction_bits) | fraction;
}

inline uint64_t convert_float(uint64_t bits, DType from, DType to) {
  FloatFormat a = format_of(from), b = format_of(to);
  return is_nan(bits, a) ? convert_nan(bits, a, b) : encode(decode(bits, a), b);
}

// One element of any supported pair; little-endian bytes in the low end of the words.
inline uint64_t convert(uint64_t bits, DType from, DType to) {
  if (kind_of(from) == DTypeKind::kFloat) return convert_float(bits, from, to);
  int width = bits_of(from);
  int64_t value = static_cast<int64_t>(bits);
  if (from == DType::kBool) {
    value = bits != 0 ? 1 : 0;
  } else if (kind_of(from) == DTypeKind::kSigned) {
    value = static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
  }
  if (kind_of(to) == DTypeKind::kFloat) {
    long double exact = from == DType::kU64 ? static_cast<long double>(bits) : static_cast<long double>(value);
    return encode(exact, format_of(to));
  }
  return bits_of(to) == 64 ? static_cast<uint64_t>(value)
                           : static_cast<uint64_t>(value) & ((uint64_t{1} << bits_of(to)) - 1);
}

}  // namespace argosy::reference
