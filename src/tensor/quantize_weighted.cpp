#include "tensor/quantize_weighted.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/processor.h"
#include "base/text.h"
#include "tensor/lanes.h"

// What ONNX Runtime's quantizer computes with NumPy in floats, operation by operation: sums go through eight lanes, up
// to 128 values at a time, as NumPy's do.
namespace argosy {
namespace {

constexpr size_t kMostValues = 256, kMostVectors = kMostValues / kLanes, kSummedVectors = 128 / kLanes;
constexpr int kTries = 20;

[[gnu::always_inline]] inline float sum_of(const Lanes& lanes) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// Sums what `term(i)` gives for each vector of the block.
template <class Term>
[[gnu::always_inline]] inline float sum(size_t vectors, Term term) {
  float total = 0;
  for (size_t begin = 0; begin < vectors; begin += kSummedVectors) {
    Lanes lanes = term(begin);
    for (size_t i = begin + 1; i < std::min(begin + kSummedVectors, vectors); ++i) lanes += term(i);
    total = begin == 0 ? sum_of(lanes) : total + sum_of(lanes);
  }
  return total;
}

[[gnu::always_inline]] inline Lanes rounded(Lanes values, float highest) {
  // Halves to even; what is below 2^22 comes out exactly, and what is above is limited anyway.
  Lanes integers = (values + kRounder) - kRounder;
  integers = integers < 0.0f ? Lanes{} : integers;
  return integers > highest ? Lanes{} + highest : integers;
}

struct Search {
  const Lanes* data;
  size_t vectors;
  float highest;
  Lanes weights[kMostVectors];
  Lanes integers[kMostVectors];

  /// With the scale and the least value that are found: their error, large values counting more.
  [[gnu::always_inline]] inline float error(float scale, float least) const {
    return sum(vectors, [&](size_t i) {
      Lanes difference = scale * integers[i] + least - data[i];
      return weights[i] * (difference * difference);
    });
  }

  [[gnu::always_inline]] inline void round(float inverse, float least) {
    for (size_t i = 0; i < vectors; ++i) integers[i] = rounded(inverse * (data[i] - least), highest);
  }
};

[[gnu::always_inline]] inline BlockScale search(const float* in, size_t count, int bits, uint8_t* out) {
  Lanes data[kMostVectors];
  std::memcpy(data, in, count * sizeof(float));
  Search s;
  s.data = data;
  s.vectors = count / kLanes;
  s.highest = static_cast<float>((1 << bits) - 1);
  float least = in[0], most = in[0];
  bool is_finite = true;
  for (size_t i = 0; i < count; ++i) {
    is_finite = is_finite && std::isfinite(in[i]);
    least = std::min(least, in[i]);
    most = std::max(most, in[i]);
  }
  if (!is_finite) return {std::numeric_limits<float>::quiet_NaN(), 0};
  float mean = std::sqrt(sum(s.vectors, [&](size_t i) { return data[i] * data[i]; }) / static_cast<float>(count));
  for (size_t i = 0; i < s.vectors; ++i) {
    Lanes magnitude = data[i] < 0.0f ? -data[i] : data[i];
    s.weights[i] = mean + magnitude;
  }
  const float sum_weights = sum(s.vectors, [&](size_t i) { return s.weights[i]; });
  const float sum_values = sum(s.vectors, [&](size_t i) { return s.weights[i] * data[i]; });
  float inverse = least != most ? s.highest / (most - least) : 1.0f;
  float scale = 1 / inverse;
  s.round(inverse, least);
  float best = s.error(scale, least);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto factor = static_cast<float>(-1 + 0.1 * attempt + s.highest);
    s.round(least != most ? factor / (most - least) : 1.0f, least);
    const Lanes* integers = s.integers;
    float sum_l = sum(s.vectors, [&](size_t i) { return s.weights[i] * integers[i]; });
    float sum_l2 = sum(s.vectors, [&](size_t i) { return s.weights[i] * integers[i] * integers[i]; });
    float sum_xl = sum(s.vectors, [&](size_t i) { return s.weights[i] * integers[i] * data[i]; });
    float determinant = sum_weights * sum_l2 - sum_l * sum_l;
    float this_scale = (sum_weights * sum_xl - sum_values * sum_l) / determinant;
    float this_least = (sum_l2 * sum_values - sum_l * sum_xl) / determinant;
    float error = s.error(this_scale, this_least);
    if (error < best) {
      best = error;
      scale = this_scale;
      least = this_least;
    }
  }
  const double highest = s.highest;
  float zero = std::clamp(std::nearbyint(-least / scale), 0.0f, s.highest);
  for (size_t i = 0; i < count; ++i) {
    double integer =
        std::nearbyint(static_cast<double>(in[i]) / static_cast<double>(scale) + static_cast<double>(zero));
    out[i] = static_cast<uint8_t>(std::clamp(integer, 0.0, highest));
  }
  return {scale, static_cast<uint8_t>(zero)};
}

BlockScale search_portable(const float* in, size_t count, int bits, uint8_t* out) {
  return search(in, count, bits, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) BlockScale search_avx2(const float* in, size_t count, int bits, uint8_t* out) {
  return search(in, count, bits, out);
}
#endif

}  // namespace

BlockScale quantize_weighted(std::span<const float> in, int bits, std::span<uint8_t> out) {
  ARGOSY_CHECK(in.size() <= kMostValues, format("a block of {} values", in.size()));
#if defined(__x86_64__)
  if (processor().avx2) return search_avx2(in.data(), in.size(), bits, out.data());
#endif
  return search_portable(in.data(), in.size(), bits, out.data());
}

}  // namespace argosy
