#include "tensor/quantize_bias.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

TensorSourcePtr numbers(const std::vector<float>& values, const char* name) {
  PlainTensor tensor{DType::kF32, {static_cast<int64_t>(values.size())}, {}};
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return std::make_shared<CountingSource>(tensor, name);
}

template <class T>
std::vector<T> all_of(const TensorSource& source) {
  auto bytes = collect(source);
  EXPECT_TRUE(bytes) << bytes.error().message;
  std::vector<T> values(bytes->size() / sizeof(T));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

TEST(QuantizeBias, is_in_steps_of_the_sum_that_it_is_added_to) {
  auto found = quantized_bias(numbers({1, -1, 0.3F, 0}, "b"), numbers({0.5F, 0.25F, 0.5F, 1}, "s"), 0.25F);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(all_of<float>(*found->scales), (std::vector<float>{0.125F, 0.0625F, 0.125F, 0.25F}));
  EXPECT_EQ(all_of<int32_t>(*found->values), (std::vector<int32_t>{8, -16, 2, 0}));
}

TEST(QuantizeBias, what_fits_no_integer_is_the_nearest_that_does) {
  auto found = quantized_bias(numbers({1e30F, -1e30F}, "b"), numbers({1, 1}, "s"), 1);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(all_of<int32_t>(*found->values),
            (std::vector<int32_t>{std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}));
}

TEST(QuantizeBias, rejects_other_shapes_and_what_is_no_number) {
  EXPECT_FALSE(quantized_bias(numbers({1, 2}, "b"), numbers({1, 2, 3}, "s"), 1));
  auto found = quantized_bias(numbers({std::numeric_limits<float>::quiet_NaN()}, "b"), numbers({1}, "s"), 1);
  ASSERT_TRUE(found);
  auto read = collect(*found->values);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("a NaN or an infinity at 0"), std::string::npos);
}

}  // namespace
}  // namespace argosy
