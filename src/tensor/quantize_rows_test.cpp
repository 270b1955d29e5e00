#include "tensor/quantize_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

TensorSourcePtr matrix(int64_t rows, int64_t width, const std::vector<float>& values) {
  PlainTensor tensor{DType::kF32, {rows, width}, {}};
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return std::make_shared<CountingSource>(tensor, "t");
}

template <class T>
std::vector<T> elements_of(const TensorSource& source) {
  auto bytes = collect(source);
  EXPECT_TRUE(bytes) << bytes.error().message;
  std::vector<T> values(bytes->size() / sizeof(T));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

std::vector<float> random_values(size_t count, float scale) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.1F, scale);
  std::vector<float> values(count);
  for (float& each : values) each = normal(random);
  return values;
}

TEST(QuantizeRows, the_farthest_value_of_a_row_is_127) {
  auto found = quantized_rows(matrix(2, 4, {1, -2, 0.5F, 0, 0, 0, 0, 0}), true);
  ASSERT_TRUE(found);
  EXPECT_EQ(elements_of<int8_t>(*found->values), (std::vector<int8_t>{64, -127, 32, 0, 0, 0, 0, 0}));
  EXPECT_EQ(elements_of<float>(*found->scales), (std::vector<float>{static_cast<float>(4.0 / 254), 1}));
  EXPECT_EQ(found->zero_points, nullptr);
}

TEST(QuantizeRows, unsigned_rows_have_zero_in_their_range) {
  auto found = quantized_rows(matrix(2, 3, {-1, 0, 1.55F, 2, 3, 5.1F}), false);
  ASSERT_TRUE(found);
  EXPECT_EQ(elements_of<uint8_t>(*found->zero_points), (std::vector<uint8_t>{100, 0}));
  EXPECT_EQ(elements_of<uint8_t>(*found->values), (std::vector<uint8_t>{0, 100, 255, 100, 150, 255}));
}

TEST(QuantizeRows, what_comes_back_is_off_by_half_a_step_at_most) {
  const int64_t rows = 5, width = 77;
  std::vector<float> values = random_values(static_cast<size_t>(rows * width), 0.3F);
  for (bool is_signed : {true, false}) {
    auto found = quantized_rows(matrix(rows, width, values), is_signed);
    ASSERT_TRUE(found);
    auto bytes = elements_of<uint8_t>(*found->values);
    auto scales = elements_of<float>(*found->scales);
    auto zeros =
        is_signed ? std::vector<uint8_t>(static_cast<size_t>(rows)) : elements_of<uint8_t>(*found->zero_points);
    for (size_t i = 0; i < values.size(); ++i) {
      size_t row = i / static_cast<size_t>(width);
      int integer = is_signed ? static_cast<int8_t>(bytes[i]) : bytes[i];
      float back = static_cast<float>(integer - zeros[row]) * scales[row];
      EXPECT_LE(std::abs(back - values[i]), scales[row] * 0.5001F) << i;
    }
  }
}

TEST(QuantizeRows, columns_can_be_read_before_rows) {
  const int64_t rows = 300, width = 500;  // more than one tile
  auto found = quantized_rows(matrix(rows, width, random_values(static_cast<size_t>(rows * width), 1)), true);
  ASSERT_TRUE(found);
  auto turned = transposed(found->values, {1, 0});
  ASSERT_TRUE(turned);
  auto columns = elements_of<int8_t>(**turned), all = elements_of<int8_t>(*found->values);
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    for (size_t c = 0; c < static_cast<size_t>(width); ++c)
      ASSERT_EQ(columns[c * static_cast<size_t>(rows) + r], all[r * static_cast<size_t>(width) + c]);
  }
}

TEST(QuantizeRows, odd_values_are_refused_with_their_row) {
  for (float odd : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    auto found = quantized_rows(matrix(2, 2, {1, 2, odd, 4}), true);
    ASSERT_TRUE(found);
    auto read = collect(*found->scales);
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("row 1"), std::string::npos) << read.error().message;
  }
}

TEST(QuantizeRows, other_tensors_are_refused) {
  EXPECT_FALSE(quantized_rows(*shape_only(DType::kI64, {2, 2}, "t"), true));
  EXPECT_FALSE(quantized_rows(*shape_only(DType::kF32, {2, 2, 2}, "t"), true));
}

}  // namespace
}  // namespace argosy
