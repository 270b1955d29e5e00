#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tensor/quantize.h"
#include "tensor/quantize_source.h"

namespace argosy {
namespace {

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double squared_error(const std::vector<float>& in, const std::vector<int8_t>& out, double scale) {
  double sum = 0;
  for (size_t i = 0; i < in.size(); ++i) sum += (in[i] - out[i] * scale) * (in[i] - out[i] * scale);
  return sum;
}

TEST(QuantizeFitted, is_no_worse_than_the_largest_value_over_the_range) {
  for (int bits : {4, 8}) {
    for (uint32_t seed = 0; seed < 50; ++seed) {
      std::vector<float> in = random_floats(32 + seed % 3, seed);
      std::vector<int8_t> out(in.size()), plain(in.size());
      float scale = quantize_block_fitted(in, bits, out);
      float largest = 0;
      for (float value : in) largest = std::max(largest, std::fabs(value));
      const float half = static_cast<float>(1 << (bits - 1)), first = largest / half;
      for (size_t i = 0; i < in.size(); ++i) {
        plain[i] = static_cast<int8_t>(std::clamp(std::nearbyint(in[i] / first), -half, half - 1));
        // Each integer is the nearest one for the scale that is returned.
        EXPECT_EQ(out[i], static_cast<int8_t>(std::clamp(std::nearbyint(in[i] / scale), -half, half - 1)));
      }
      EXPECT_LE(squared_error(in, out, scale), squared_error(in, plain, first) * 1.0001);
    }
  }
}

TEST(QuantizeFitted, keeps_zeros_and_reports_what_is_not_finite) {
  std::vector<float> in(32, 0.0f);
  std::vector<int8_t> out(32, 1);
  EXPECT_EQ(quantize_block_fitted(in, 4, out), FLT_EPSILON);
  EXPECT_EQ(out, std::vector<int8_t>(32, 0));
  in[31] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(quantize_block_fitted(in, 4, out)));
}

TensorSourcePtr source_of(const std::vector<float>& values, std::vector<int64_t> shape) {
  std::vector<std::byte> bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return literal(std::move(bytes), DType::kF32, std::move(shape)).value();
}

std::vector<std::byte> all_of(const TensorSource& source, size_t scratch_bytes) {
  std::vector<std::byte> bytes;
  Status status = source.stream_to(
      [&](std::span<const std::byte> part) {
        bytes.insert(bytes.end(), part.begin(), part.end());
        return Status{};
      },
      scratch_bytes);
  EXPECT_TRUE(status);
  return bytes;
}

TEST(QuantizeFitted, packs_pairs_and_reads_any_part) {
  constexpr size_t kRows = 6, kWidth = 128, kBlock = 32;
  std::vector<float> values = random_floats(kRows * kWidth, 7);
  TensorSourcePtr source = source_of(values, {kRows, kWidth});
  std::vector<int8_t> integers(values.size());
  std::vector<float> scales;
  for (size_t i = 0; i < values.size(); i += kBlock) {
    scales.push_back(quantize_block_fitted({values.data() + i, kBlock}, 4, {integers.data() + i, kBlock}));
  }
  for (QuantizedForm form : {QuantizedForm::kNibbles, QuantizedForm::kSwapped}) {
    SourceGroupPtr group = quantized_blocks(source, {{QuantizeMethod::kFitted}, kBlock, form}).value();
    TensorSourcePtr packed = group_output(group, 0), factors = group_output(group, 1);
    std::vector<std::byte> wide = all_of(*packed, 1 << 20);
    ASSERT_EQ(wide.size(), values.size() / 2);
    for (size_t i = 0; i < wide.size(); ++i) {
      auto first = static_cast<uint8_t>(integers[2 * i] + 8), second = static_cast<uint8_t>(integers[2 * i + 1] + 8);
      bool is_swapped = form == QuantizedForm::kSwapped;
      EXPECT_EQ(static_cast<uint8_t>(wide[i]), is_swapped ? first << 4 | second : second << 4 | first) << i;
    }
    for (size_t scratch : {1 << 20, 4000}) {
      std::vector<std::byte> bytes = all_of(*factors, scratch);
      ASSERT_EQ(bytes.size(), scales.size() * 4);
      EXPECT_EQ(std::memcmp(bytes.data(), scales.data(), bytes.size()), 0);
    }
    EXPECT_EQ(all_of(*packed, 4000), wide);
  }
}

TEST(QuantizeFitted, rejects_rows_that_are_not_made_of_blocks) {
  TensorSourcePtr source = source_of(random_floats(2 * 48, 1), {2, 48});
  auto fitted = [&](int64_t block, QuantizedForm form, DType scales) {
    return quantized_blocks(source, {{QuantizeMethod::kFitted, 8, true, scales}, block, form});
  };
  EXPECT_FALSE(fitted(32, QuantizedForm::kNibbles, DType::kF32));
  EXPECT_FALSE(fitted(16, QuantizedForm::kNibbles, DType::kF64));
  EXPECT_TRUE(fitted(16, QuantizedForm::kI8, DType::kBF16));
}

}  // namespace
}  // namespace argosy
