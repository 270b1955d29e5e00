#include "tensor/quantize.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/text.h"

namespace argosy {

float quantize_block_int8(std::span<const float> in, std::span<int8_t> out) {
  ARGOSY_CHECK(in.size() == out.size(), format("{} to {} elements", in.size(), out.size()));
  // As integers, magnitudes compare like the floats, and a NaN or an infinity above all others.
  int32_t largest = 0;
  for (float value : in) largest = std::max(largest, std::bit_cast<int32_t>(value) & 0x7fffffff);
  if (largest >= 0x7f800000) return std::numeric_limits<float>::quiet_NaN();
  if (largest == 0) {
    std::ranges::fill(out, int8_t{0});
    return 1.0f;
  }
  float scale = std::max(std::bit_cast<float>(largest) / 127.0f, FLT_MIN);
  // In [2^23, 2^24) the unit of a float is 1, so that this sum rounds half to even and ends in the integer.
  constexpr float kRounder = 0x1.8p23f;
  const float* from = in.data();
  int8_t* to = out.data();
  for (size_t i = 0; i < in.size(); ++i) {
    to[i] = static_cast<int8_t>(std::bit_cast<int32_t>(from[i] / scale + kRounder) - std::bit_cast<int32_t>(kRounder));
  }
  return scale;
}

}  // namespace argosy
