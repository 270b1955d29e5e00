#include "tensor/cast.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "base/processor.h"
#include "base/text.h"
#include "tensor/float_mode.h"
#include "tensor/unpack.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define ARGOSY_CAST_AVX2 1
#else
#define ARGOSY_CAST_AVX2 0
#endif

// Kernels are written once as scalar functions without branches, which the compiler turns into SSE2 loops, and into
// AVX2 ones where they are inlined into a function of that target. Dispatch is by a plain test and not by
// target_clones: that needs ifunc resolvers, which run before the sanitizers' runtimes are ready.
#define ARGOSY_INLINE inline __attribute__((always_inline))

namespace argosy {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Float8E4M3 {
  uint8_t bits;
};
struct Float8E5M2 {
  uint8_t bits;
};
struct Float8E8M0 {
  uint8_t bits;
};
struct Boolean {
  uint8_t byte;
};

template <class T>
inline constexpr bool kIsSmallFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat> || std::is_same_v<T, Float8E4M3> ||
    std::is_same_v<T, Float8E5M2> || std::is_same_v<T, Float8E8M0>;

// ---- One element ----

// All ones where a < b, else zero, for a and b from 0 to INT32_MAX: a comparison that stays in 32-bit lanes.
ARGOSY_INLINE uint32_t mask_below(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(static_cast<int32_t>(a - b) >> 31);
}

ARGOSY_INLINE uint32_t select(uint32_t mask, uint32_t yes, uint32_t no) { return (yes & mask) | (no & ~mask); }

ARGOSY_INLINE Half to_half(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // The units of 0.5f are those of f16 subnormals (2^-24), so this addition rounds as needed.
  uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  uint32_t result = select(mask_below(magnitude, 0x38800000), subnormal, normal);
  result = select(mask_below(magnitude, 0x477ff000), result, 0x7c00);  // from 65520, half a unit above the largest
  result = select(mask_below(0x7f800000, magnitude), nan, result);
  return {static_cast<uint16_t>(sign | result)};
}

ARGOSY_INLINE float to_float(Half value) {
  uint32_t bits = value.bits;
  uint32_t sign = (bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  uint32_t shifted = magnitude << 13;
  uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  uint32_t result = select(mask_below(magnitude, 0x400), subnormal, shifted + (112u << 23));
  result = select(mask_below(magnitude, 0x7c00), result, shifted | 0x7f800000);
  result |= mask_below(0x7c00, magnitude) & 0x400000;
  return std::bit_cast<float>(sign | result);
}

ARGOSY_INLINE BFloat to_bfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  uint32_t nan = (bits >> 16) | 0x40;
  return {static_cast<uint16_t>(select(mask_below(0x7f800000, bits & 0x7fffffff), nan, rounded))};
}

ARGOSY_INLINE float to_float(BFloat value) {
  uint32_t bits = uint32_t{value.bits} << 16;
  bits |= mask_below(0x7f800000, bits & 0x7fffffff) & 0x400000;
  return std::bit_cast<float>(bits);
}

// Has no infinities, and one NaN of each sign: all ones.
ARGOSY_INLINE float to_float(Float8E4M3 value) {
  uint32_t bits = value.bits;
  uint32_t sign = (bits & 0x80) << 24;
  uint32_t magnitude = bits & 0x7f;
  uint32_t shifted = magnitude << 20;
  uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-9f);
  uint32_t result = select(mask_below(magnitude, 0x08), subnormal, shifted + (120u << 23));
  result |= mask_below(0x7e, magnitude) & 0x7f800000;
  return std::bit_cast<float>(sign | result);
}

ARGOSY_INLINE float to_float(Float8E5M2 value) { return to_float(Half{static_cast<uint16_t>(value.bits << 8)}); }

// An exponent alone: 0 is 2^-127, a subnormal of f32; all ones is NaN.
ARGOSY_INLINE float to_float(Float8E8M0 value) {
  uint32_t bits = value.bits;
  uint32_t result = select(mask_below(bits, 1), 0x00400000, bits << 23);
  return std::bit_cast<float>(result | (mask_below(0xfe, bits) & 0x400000));
}

// Rounds to odd: if inexact, the neighbour whose last bit is set. Rounding that once more, to a format of at least two
// bits fewer, gives what rounding the double directly would.
ARGOSY_INLINE float to_float_odd(double value) {
  float nearest = static_cast<float>(value);
  double back = nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  bool is_off = (back < value) | (back > value);  // not for a NaN
  uint32_t step = std::fabs(value) > std::fabs(back) ? 1u : ~0u;
  return std::bit_cast<float>(bits + ((is_off & !(bits & 1)) ? step : 0u));
}

// A 64-bit integer as a double that rounds to bf16 or f16 as the integer would: low bits that a double may lack are
// gathered in one sticky bit.
template <class Integer>
ARGOSY_INLINE double to_sticky_double(Integer value) {
  if constexpr (sizeof(Integer) < 8) {
    return static_cast<double>(value);
  } else {
    constexpr Integer kLow = 0x7ff;
    constexpr Integer kExact = Integer{1} << 53;
    bool is_exact = value <= kExact;
    if constexpr (std::is_signed_v<Integer>) is_exact &= value >= -kExact;
    if (is_exact) return static_cast<double>(value);
    // Rounds to odd, for negative values too: clearing low bits rounds down, and of two neighbours one is odd.
    Integer sticky = (value & kLow) != 0 ? kLow + 1 : 0;
    return static_cast<double>((value & ~kLow) | sticky);
  }
}

template <class From, class To>
ARGOSY_INLINE To convert_one(From value) {
  constexpr bool kToFloatType = std::is_floating_point_v<To>;
  if constexpr (std::is_same_v<From, Boolean>) {
    return convert_one<uint8_t, To>(value.byte != 0 ? 1 : 0);
  } else if constexpr (kIsSmallFloat<From>) {
    if constexpr (kToFloatType) return to_float(value);
    if constexpr (std::is_same_v<To, Half>) return to_half(to_float(value));
    if constexpr (std::is_same_v<To, BFloat>) return to_bfloat(to_float(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat>) {
    float single;
    if constexpr (std::is_same_v<From, float>) {
      single = value;
    } else if constexpr (std::is_same_v<From, double>) {
      single = to_float_odd(value);
    } else {
      single = to_float_odd(to_sticky_double(value));
    }
    if constexpr (std::is_same_v<To, Half>) return to_half(single);
    if constexpr (std::is_same_v<To, BFloat>) return to_bfloat(single);
  } else {
    return static_cast<To>(value);
  }
}

// ---- Loops ----

template <class T>
ARGOSY_INLINE T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class From, class To>
ARGOSY_INLINE void convert_loop(const std::byte* __restrict in, std::byte* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    To value = convert_one<From, To>(load<From>(in + i * sizeof(From)));
    std::memcpy(out + i * sizeof(To), &value, sizeof(To));
  }
}

template <class From, class To>
void convert_portable(const std::byte* in, std::byte* out, size_t count) {
  convert_loop<From, To>(in, out, count);
}

using CastFunction = void (*)(const std::byte* in, std::byte* out, size_t count);

#if ARGOSY_CAST_AVX2
template <class From, class To>
__attribute__((target("avx2"))) void convert_avx2(const std::byte* in, std::byte* out, size_t count) {
  convert_loop<From, To>(in, out, count);
}

__attribute__((target("avx2,f16c"))) void float_to_half_f16c(const std::byte* in, std::byte* out, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256 values = _mm256_loadu_ps(reinterpret_cast<const float*>(in + 4 * i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  }
  convert_loop<float, Half>(in + 4 * i, out + 2 * i, count - i);
}

__attribute__((target("avx2,f16c"))) void half_to_float_f16c(const std::byte* in, std::byte* out, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256 values = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i)));
    _mm256_storeu_ps(reinterpret_cast<float*>(out + 4 * i), values);
  }
  convert_loop<Half, float>(in + 2 * i, out + 4 * i, count - i);
}

__attribute__((target("avx2,f16c"))) void bfloat_to_half_f16c(const std::byte* in, std::byte* out, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i)));
    __m256 values = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  }
  convert_loop<BFloat, Half>(in + 2 * i, out + 2 * i, count - i);
}

template <class From, class To>
CastFunction choose(CastPath path) {
  if (path == CastPath::kPortable || !processor().avx2) return convert_portable<From, To>;
  [[maybe_unused]] bool has_f16c = processor().f16c;
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>) {
    if (has_f16c) return float_to_half_f16c;
  }
  if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>) {
    if (has_f16c) return half_to_float_f16c;
  }
  if constexpr (std::is_same_v<From, BFloat> && std::is_same_v<To, Half>) {
    if (has_f16c) return bfloat_to_half_f16c;
  }
  return convert_avx2<From, To>;
}
#else
template <class From, class To>
CastFunction choose(CastPath) {
  return convert_portable<From, To>;
}
#endif

// ---- Tables ----

template <class From>
CastFunction float_to(DType to, CastPath path) {
  switch (to) {
    case DType::kF64: return choose<From, double>(path);
    case DType::kF32: return choose<From, float>(path);
    case DType::kF16: return choose<From, Half>(path);
    case DType::kBF16: return choose<From, BFloat>(path);
    default: return nullptr;
  }
}

template <class From>
CastFunction integer_to(DType to) {
  switch (to) {
    case DType::kF64: return convert_portable<From, double>;
    case DType::kF32: return convert_portable<From, float>;
    case DType::kF16: return convert_portable<From, Half>;
    case DType::kBF16: return convert_portable<From, BFloat>;
    case DType::kU8: return convert_portable<From, uint8_t>;
    case DType::kI8: return convert_portable<From, int8_t>;
    case DType::kU16: return convert_portable<From, uint16_t>;
    case DType::kI16: return convert_portable<From, int16_t>;
    case DType::kU32: return convert_portable<From, uint32_t>;
    case DType::kI32: return convert_portable<From, int32_t>;
    case DType::kU64: return convert_portable<From, uint64_t>;
    case DType::kI64: return convert_portable<From, int64_t>;
    default: return nullptr;
  }
}

CastFunction find_function(DType from, DType to, CastPath path) {
  switch (from) {
    case DType::kF64: return float_to<double>(to, path);
    case DType::kF32: return float_to<float>(to, path);
    case DType::kF16: return float_to<Half>(to, path);
    case DType::kBF16: return float_to<BFloat>(to, path);
    case DType::kF8E4M3FN: return float_to<Float8E4M3>(to, path);
    case DType::kF8E5M2: return float_to<Float8E5M2>(to, path);
    case DType::kF8E8M0FNU: return float_to<Float8E8M0>(to, path);
    case DType::kBool: return integer_to<Boolean>(to);
    case DType::kU8: return integer_to<uint8_t>(to);
    case DType::kI8: return integer_to<int8_t>(to);
    case DType::kU16: return integer_to<uint16_t>(to);
    case DType::kI16: return integer_to<int16_t>(to);
    case DType::kU32: return integer_to<uint32_t>(to);
    case DType::kI32: return integer_to<int32_t>(to);
    case DType::kU64: return integer_to<uint64_t>(to);
    case DType::kI64: return integer_to<int64_t>(to);
    default: return nullptr;
  }
}

bool is_plain_float(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

bool is_8_bit_float(DType dtype) {
  return dtype == DType::kF8E4M3FN || dtype == DType::kF8E5M2 || dtype == DType::kF8E8M0FNU;
}

bool is_plain_integer(DType dtype) {
  return (kind_of(dtype) == DTypeKind::kSigned || kind_of(dtype) == DTypeKind::kUnsigned) && bits_of(dtype) >= 8;
}

// Bits of the significand, the implied one included: integers up to 2^that are exact.
int significand_bits(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 53;
    case DType::kF32: return 24;
    case DType::kF16: return 11;
    default: return 8;  // bf16
  }
}

// Bits of the largest magnitude below a power of two; the lowest value of a signed type is a power of two itself.
int value_bits(DType dtype) {
  if (dtype == DType::kBool) return 1;
  return bits_of(dtype) - (kind_of(dtype) == DTypeKind::kSigned ? 1 : 0);
}

}  // namespace

bool can_cast(DType from, DType to) {
  if (from == to) return false;
  if (bits_of(from) < 8) return can_unpack(from, to);
  if (is_plain_float(to)) {
    return is_plain_float(from) || is_8_bit_float(from) || is_plain_integer(from) || from == DType::kBool;
  }
  if (!is_plain_integer(to)) return false;
  if (from == DType::kBool) return true;
  if (!is_plain_integer(from)) return false;
  bool loses_sign = kind_of(from) == DTypeKind::kSigned && kind_of(to) == DTypeKind::kUnsigned;
  return !loses_sign && value_bits(to) >= value_bits(from);
}

bool is_exact_cast(DType from, DType to) {
  if (!can_cast(from, to)) return false;
  if (!is_plain_float(to)) return true;
  if (is_8_bit_float(from)) return from != DType::kF8E8M0FNU || to != DType::kF16;
  if (!is_plain_float(from)) return value_bits(from) <= significand_bits(to);
  return bits_of(to) > bits_of(from);
}

float rounded_to(float value, DType type) {
  switch (type) {
    case DType::kF16: return to_float(to_half(value));
    case DType::kBF16: return to_float(to_bfloat(value));
    default: ARGOSY_CHECK(type == DType::kF32, "values are rounded to floats of 16 and 32 bits"); return value;
  }
}

void cast_elements(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out, CastPath path) {
  ARGOSY_CHECK(can_cast(from, to), format("{} to {}", to_text(from), to_text(to)));
  if (bits_of(from) < 8) {
    unpack_elements(from, in, out);
    return;
  }
  size_t from_size = static_cast<size_t>(bits_of(from)) / 8, to_size = static_cast<size_t>(bits_of(to)) / 8;
  size_t count = in.size() / from_size;
  ARGOSY_CHECK(in.size() == count * from_size && out.size() == count * to_size,
               format("{} to {} bytes", in.size(), out.size()));
  CastFunction function = find_function(from, to, path);
  DefaultFloatMode mode;  // the loop is called through a pointer, so that nothing moves out of it
  function(in.data(), out.data(), count);
}

}  // namespace argosy
