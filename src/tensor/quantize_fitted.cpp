#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/processor.h"
#include "base/text.h"
#include "tensor/lanes.h"
#include "tensor/quantize.h"

namespace argosy {
namespace {

[[gnu::always_inline]] inline float limited(float value, float scale, float least, float most) {
  float integer = (value / scale + kRounder) - kRounder;
  integer = integer < least ? least : integer;
  return integer > most ? most : integer;
}

struct Fit {
  double product, square;  // of values and integers, of integers with themselves
};

constexpr float kLeastScale = std::numeric_limits<float>::epsilon();

/// What is added up in floats, lane by lane, before it becomes a double.
constexpr size_t kPart = 16 * kLanes;

/// By the inverse of the scale, which is faster; what lies within an ulp of a half may round to the other side here.
/// Parts are summed as doubles, where order makes no difference to the float in the end: whoever follows these steps
/// has each integer the same.
[[gnu::always_inline]] inline Fit fit(const float* in, size_t count, float scale, float least, float most) {
  const float inverse = 1 / scale;
  const Lanes low = Lanes{} + least, high = Lanes{} + most;
  Fit sums = {};
  for (size_t start = 0; start < count; start += kPart) {
    const size_t end = std::min(count, start + kPart), whole = end - (end - start) % kLanes;
    Lanes products = {}, squares = {};
    for (size_t i = start; i < whole; i += kLanes) {
      Lanes values;
      std::memcpy(&values, in + i, sizeof(values));
      Lanes integers = (values * inverse + kRounder) - kRounder;
      integers = integers < low ? low : integers;
      integers = integers > high ? high : integers;
      products += values * integers;
      squares += integers * integers;
    }
    for (size_t i = whole; i < end; ++i) {
      float integer = std::clamp((in[i] * inverse + kRounder) - kRounder, least, most);
      products[i - whole] += in[i] * integer;
      squares[i - whole] += integer * integer;
    }
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums.product += products[lane];
      sums.square += squares[lane];
    }
  }
  return sums;
}

[[gnu::always_inline]] inline float quantize(const float* in, size_t count, int bits, int8_t* out) {
  // As integers, magnitudes compare like the floats, and a NaN or an infinity above all others.
  LaneBits highest = {};
  size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    LaneBits pattern;
    std::memcpy(&pattern, in + i, sizeof(pattern));
    pattern &= 0x7fffffff;
    highest = pattern > highest ? pattern : highest;
  }
  int32_t largest = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) largest = std::max<int32_t>(largest, highest[lane]);
  for (size_t i = whole; i < count; ++i) largest = std::max(largest, std::bit_cast<int32_t>(in[i]) & 0x7fffffff);
  if (largest >= 0x7f800000) return std::numeric_limits<float>::quiet_NaN();
  const auto half = static_cast<float>(1 << (bits - 1));
  const float least = -half, most = half - 1;
  float scale = std::max(std::bit_cast<float>(largest) / half, kLeastScale);
  constexpr int kRounds = 20;
  constexpr float kTolerance = 1e-5f;
  for (int round = 0; round < kRounds; ++round) {
    Fit found = fit(in, count, scale, least, most);
    float next = found.square > 0 ? std::max(static_cast<float>(found.product / found.square), kLeastScale) : scale;
    bool is_done = std::abs(next - scale) < kTolerance * scale;
    scale = next;
    if (is_done) break;
  }
  for (size_t i = 0; i < whole; i += kLanes) {
    Lanes values;
    std::memcpy(&values, in + i, sizeof(values));
    Lanes integers = values / scale + kRounder;
    integers = integers < kRounder + least ? Lanes{} + (kRounder + least) : integers;
    integers = integers > kRounder + most ? Lanes{} + (kRounder + most) : integers;
    LaneBits pattern;
    std::memcpy(&pattern, &integers, sizeof(pattern));
    for (size_t lane = 0; lane < kLanes; ++lane) {
      out[i + lane] = static_cast<int8_t>(pattern[lane] - std::bit_cast<int32_t>(kRounder));
    }
  }
  for (size_t i = whole; i < count; ++i) out[i] = static_cast<int8_t>(limited(in[i], scale, least, most));
  return scale;
}

float quantize_portable(const float* in, size_t count, int bits, int8_t* out) { return quantize(in, count, bits, out); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) float quantize_avx2(const float* in, size_t count, int bits, int8_t* out) {
  return quantize(in, count, bits, out);
}
#endif

}  // namespace

float quantize_block_fitted(std::span<const float> in, int bits, std::span<int8_t> out) {
  ARGOSY_CHECK(in.size() == out.size() && bits >= 2 && bits <= 8,
               format("{} to {} elements of {} bits", in.size(), out.size(), bits));
#if defined(__x86_64__)
  if (processor().avx2) return quantize_avx2(in.data(), in.size(), bits, out.data());
#endif
  return quantize_portable(in.data(), in.size(), bits, out.data());
}

}  // namespace argosy
