#include "tensor/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/processor.h"
#include "base/text.h"
#include "tensor/cast.h"
#include "tensor/lanes.h"
#include "tensor/quantize_weighted.h"

namespace argosy {
namespace {

struct Range {
  float least, most;
  bool is_finite;
};

/// Of the first lanes and these, the least, the most and the highest pattern. Of equal ones the first is kept: a block
/// of zeros has the sign of its first.
template <int A, int B, int C, int D>
[[gnu::always_inline]] inline void fold(Lanes& low, Lanes& high, LaneBits& bits) {
  Lanes other_low = __builtin_shufflevector(low, low, A, B, C, D, A, B, C, D);
  Lanes other_high = __builtin_shufflevector(high, high, A, B, C, D, A, B, C, D);
  LaneBits other_bits = __builtin_shufflevector(bits, bits, A, B, C, D, A, B, C, D);
  low = other_low < low ? other_low : low;
  high = other_high > high ? other_high : high;
  bits = other_bits > bits ? other_bits : bits;
}

[[gnu::always_inline]] inline Range range_of(const float* in, size_t count) {
  Lanes low, high, values;
  load_lanes(low, in);
  high = low;
  LaneBits bits = {};
  for (size_t i = 0; i < count; i += kLanes) {
    load_lanes(values, in + i);
    low = values < low ? values : low;
    high = values > high ? values : high;
    // As integers, magnitudes compare like the floats, and a NaN or an infinity above all others.
    LaneBits pattern;
    std::memcpy(&pattern, &values, sizeof(pattern));
    pattern &= 0x7fffffff;
    bits = pattern > bits ? pattern : bits;
  }
  fold<4, 5, 6, 7>(low, high, bits);
  fold<2, 3, 2, 3>(low, high, bits);
  fold<1, 1, 1, 1>(low, high, bits);
  return {low[0], high[0], bits[0] < 0x7f800000};
}

/// Each lane is below 256. Its bytes are brought together by shuffles, which GCC does not find by itself.
[[gnu::always_inline]] inline void store_bytes(const LaneBits& whole, uint8_t* out) {
  using Bytes = uint8_t __attribute__((vector_size(32)));
  using Words = uint32_t __attribute__((vector_size(32)));
  Bytes bytes;
  std::memcpy(&bytes, &whole, sizeof(bytes));
  bytes = __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 16, 20, 24, 28, 16,
                                  20, 24, 28, 16, 20, 24, 28, 16, 20, 24, 28);
  Words words;
  std::memcpy(&words, &bytes, sizeof(words));
  uint32_t both[2] = {words[0], words[4]};
  std::memcpy(out, both, sizeof(both));
}

/// Halves are rounded away from zero, as C's roundf does.
[[gnu::always_inline]] inline BlockScale largest_scale(const Range& range, const BlockMethod& how) {
  const auto middle = static_cast<float>(1 << (how.bits - 1)), highest = 2 * middle - 1;
  if (how.is_symmetric) {
    float farthest = std::fabs(range.most) > std::fabs(range.least) ? range.most : range.least;
    return {rounded_to(farthest / -middle, how.scales), static_cast<uint8_t>(middle)};
  }
  float least = std::min(range.least, 0.0f), most = std::max(range.most, 0.0f);
  float scale = (most - least) / highest;
  float zero = scale != 0 ? 0.0f - least / scale : least;
  return {rounded_to(scale, how.scales), static_cast<uint8_t>(std::roundf(std::clamp(zero, 0.0f, highest)))};
}

[[gnu::always_inline]] inline BlockScale quantize_largest(const float* in, size_t count, const BlockMethod& how,
                                                          uint8_t* out) {
  Range range = range_of(in, count);
  if (!range.is_finite) return {std::numeric_limits<float>::quiet_NaN(), 0};
  BlockScale found = largest_scale(range, how);
  const float inverse = found.scale != 0 ? 1 / found.scale : 0, zero = found.zero;
  const auto highest = static_cast<float>((1 << how.bits) - 1);
  for (size_t i = 0; i < count; i += kLanes) {
    Lanes values;
    load_lanes(values, in + i);
    values = values * inverse + zero;
    values = values < 0.0f ? Lanes{} : values;
    values = values > highest ? Lanes{} + highest : values;
    LaneBits whole = __builtin_convertvector(values, LaneBits);
    Lanes rest = values - __builtin_convertvector(whole, Lanes);
    whole -= rest >= 0.5f;  // true is -1
    store_bytes(whole, out + i);
  }
  return found;
}

/// Above which a value, as a part of its block's largest magnitude, gets the next integer: halfway between two of NF4's
/// floats, as ONNX Runtime's kernel has them to the last bit.
constexpr float kNormalSteps[] = {-0.84809643f,  -0.610632896f,  -0.45999527f,  -0.33967942f, -0.234607399f,
                                  -0.137911737f, -0.0455250181f, 0.0397901498f, 0.120255254f, 0.203521252f,
                                  0.292013764f,  0.389312536f,   0.501663387f,  0.64278692f,  0.861478388f};

/// A magnitude may be so small that nothing is 1 / it: then zeros are no numbers, and get the first integer as in ONNX
/// Runtime.
[[gnu::always_inline]] inline BlockScale quantize_normal(const float* in, size_t count, uint8_t* out) {
  Range range = range_of(in, count);
  if (!range.is_finite) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float largest = std::max(std::fabs(range.least), std::fabs(range.most));
  const float inverse = largest != 0 ? 1 / largest : 0;
  for (size_t i = 0; i < count; i += kLanes) {
    Lanes values;
    load_lanes(values, in + i);
    values *= inverse;
    LaneBits passed = {};
    for (float step : kNormalSteps) passed -= values > step;  // true is -1
    store_bytes(passed, out + i);
  }
  return {largest, 0};
}

BlockScale quantize_normal_portable(const float* in, size_t count, uint8_t* out) {
  return quantize_normal(in, count, out);
}

BlockScale quantize_largest_portable(const float* in, size_t count, const BlockMethod& how, uint8_t* out) {
  return quantize_largest(in, count, how, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) BlockScale quantize_largest_avx2(const float* in, size_t count, const BlockMethod& how,
                                                                 uint8_t* out) {
  return quantize_largest(in, count, how, out);
}

__attribute__((target("avx2"))) BlockScale quantize_normal_avx2(const float* in, size_t count, uint8_t* out) {
  return quantize_normal(in, count, out);
}
#endif

/// In doubles, as NumPy computes it there.
BlockScale quantize_nearest(std::span<const float> in, const BlockMethod& how, std::span<uint8_t> out) {
  Range range = range_of(in.data(), in.size());
  if (!range.is_finite) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const double highest = (1 << how.bits) - 1;
  double scale = 1, zero = 1 << (how.bits - 1);
  if (how.is_symmetric) {
    float largest = std::max(std::fabs(range.least), std::fabs(range.most));
    if (largest > 0) scale = static_cast<double>(largest * 2.0f) / highest;
  } else {
    if (range.least != range.most) scale = static_cast<double>(range.most - range.least) / highest;
    zero = std::clamp(std::nearbyint((0.0 - static_cast<double>(range.least)) / scale), 0.0, highest);
  }
  for (size_t i = 0; i < in.size(); ++i) {
    double integer = std::nearbyint(static_cast<double>(in[i]) / scale + zero);
    out[i] = static_cast<uint8_t>(std::clamp(integer, 0.0, highest));
  }
  return {static_cast<float>(scale), static_cast<uint8_t>(zero)};
}

BlockScale quantize_fitted(std::span<const float> in, const BlockMethod& how, std::span<uint8_t> out) {
  float scale = quantize_block_fitted(in, how.bits, {reinterpret_cast<int8_t*>(out.data()), out.size()});
  const auto middle = static_cast<uint8_t>(1 << (how.bits - 1));
  for (uint8_t& integer : out) integer = static_cast<uint8_t>(integer + middle);
  return {scale, middle};
}

}  // namespace

BlockScale quantize_block(std::span<const float> in, const BlockMethod& how, std::span<uint8_t> out) {
  if (how.method == QuantizeMethod::kFitted) return quantize_fitted(in, how, out);
  ARGOSY_CHECK(in.size() == out.size() && !in.empty() && in.size() % kLanes == 0 && how.bits >= 2 && how.bits <= 8,
               format("{} to {} elements of {} bits", in.size(), out.size(), how.bits));
  switch (how.method) {
    case QuantizeMethod::kNearest: return quantize_nearest(in, how, out);
    case QuantizeMethod::kWeighted: return quantize_weighted(in, how.bits, out);
    case QuantizeMethod::kFitted:
    case QuantizeMethod::kLargest:
    case QuantizeMethod::kNormal: break;
  }
  const bool is_normal = how.method == QuantizeMethod::kNormal;
#if defined(__x86_64__)
  if (processor().avx2 && is_normal) return quantize_normal_avx2(in.data(), in.size(), out.data());
  if (processor().avx2) return quantize_largest_avx2(in.data(), in.size(), how, out.data());
#endif
  if (is_normal) return quantize_normal_portable(in.data(), in.size(), out.data());
  return quantize_largest_portable(in.data(), in.size(), how, out.data());
}

}  // namespace argosy
