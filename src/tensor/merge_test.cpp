#include "tensor/merge.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

TensorSourcePtr merge_memory(const PlainTensor& tensor) { return std::make_shared<CountingSource>(tensor, "t"); }

// Multiples of 2^-8, so that all products and sums are exact in f32, whatever their order.
PlainTensor random_matrix(DType dtype, int64_t rows, int64_t columns, std::mt19937& random) {
  PlainTensor tensor{DType::kF32, {rows, columns}, {}};
  for (int64_t i = 0; i < rows * columns; ++i) {
    auto value = static_cast<float>(static_cast<int>(random() % 65) - 32) / 256;
    auto bits = std::bit_cast<std::array<std::byte, 4>>(value);
    tensor.bytes.insert(tensor.bytes.end(), bits.begin(), bits.end());
  }
  return dtype == DType::kF32 ? tensor : plain_cast(tensor, dtype);
}

float value_at(const PlainTensor& tensor, int64_t row, int64_t column) {
  PlainTensor floats = tensor;
  size_t size = tensor.element_size(), at = static_cast<size_t>(tensor.offset({row, column})) * size;
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + at, size);
  if (tensor.dtype != DType::kF32) bits = reference::convert(bits, tensor.dtype, DType::kF32);
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

TEST(MergeTest, adds_a_scaled_product_and_rounds_once) {
  std::mt19937 random(1);
  struct Case {
    DType base, factor;
    int64_t rows, columns, rank;
  };
  for (const Case& one : {Case{DType::kF32, DType::kF32, 5, 7, 3}, Case{DType::kBF16, DType::kF32, 70, 33, 4},
                          Case{DType::kF16, DType::kBF16, 3, 2100, 2}, Case{DType::kBF16, DType::kBF16, 130, 9, 1}}) {
    PlainTensor base = random_matrix(one.base, one.rows, one.columns, random);
    PlainTensor left = random_matrix(one.factor, one.rows, one.rank, random);
    PlainTensor right = random_matrix(one.factor, one.rank, one.columns, random);
    PlainTensor sum{DType::kF32, base.shape, {}};
    for (int64_t r = 0; r < one.rows; ++r) {
      for (int64_t c = 0; c < one.columns; ++c) {
        float total = 0;
        for (int64_t k = 0; k < one.rank; ++k) total += value_at(left, r, k) * value_at(right, k, c);
        auto bits = std::bit_cast<std::array<std::byte, 4>>(value_at(base, r, c) + 0.5f * total);
        sum.bytes.insert(sum.bytes.end(), bits.begin(), bits.end());
      }
    }
    PlainTensor expected = one.base == DType::kF32 ? sum : plain_cast(sum, one.base);
    auto source = product_added(merge_memory(base), merge_memory(left), merge_memory(right), 0.5f);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(collect(**source).value(), expected.bytes);
    size_t size = expected.element_size();
    for (int i = 0; i < 20; ++i) {
      auto first = static_cast<int64_t>(random()) % expected.elements();
      auto count = 1 + static_cast<int64_t>(random()) % (expected.elements() - first);
      size_t least = Scratch::cost(size) + (*source)->scratch_for(1);
      auto part = collect(**source, first, count, least + random() % 5000);
      ASSERT_TRUE(part);
      EXPECT_TRUE(std::equal(part->begin(), part->end(), expected.bytes.begin() + first * static_cast<int64_t>(size)));
    }
  }
}

TEST(MergeTest, rejects_what_does_not_fit) {
  auto matrix = [](DType dtype, std::vector<int64_t> shape) {
    return merge_memory(counting_tensor(dtype, std::move(shape)));
  };
  auto base = matrix(DType::kF32, {4, 6});
  EXPECT_TRUE(product_added(base, matrix(DType::kF32, {4, 2}), matrix(DType::kF32, {2, 6}), 1));
  EXPECT_FALSE(product_added(base, matrix(DType::kF32, {5, 2}), matrix(DType::kF32, {2, 6}), 1));
  EXPECT_FALSE(product_added(base, matrix(DType::kF32, {4, 2}), matrix(DType::kF32, {3, 6}), 1));
  EXPECT_FALSE(product_added(base, matrix(DType::kF32, {4, 2}), matrix(DType::kF32, {2, 5}), 1));
  EXPECT_FALSE(product_added(base, matrix(DType::kI32, {4, 2}), matrix(DType::kF32, {2, 6}), 1));
  EXPECT_FALSE(product_added(base, matrix(DType::kF32, {4, 2, 1}), matrix(DType::kF32, {2, 6}), 1));
  EXPECT_FALSE(
      product_added(matrix(DType::kF32, {4, 6}), matrix(DType::kF32, {4, 5000}), matrix(DType::kF32, {5000, 6}), 1));
}

}  // namespace
}  // namespace argosy
