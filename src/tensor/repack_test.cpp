#include "tensor/repack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tensor/cast.h"
#include "tensor/dequantize.h"

namespace argosy {
namespace {

std::vector<std::byte> all_of(const TensorSource& source) {
  std::vector<std::byte> bytes;
  auto take = [&](std::span<const std::byte> block) -> Status {
    bytes.insert(bytes.end(), block.begin(), block.end());
    return {};
  };
  Status done = source.stream_to(take, size_t{1} << 16);
  EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().message);
  return bytes;
}

struct Made {
  int bits = 4;
  int64_t rows = 8, columns = 48, block = 16;
  int64_t zero = 0, modulus = 0;
  bool has_zeros = true;
  DType scales = DType::kF16, dtype = DType::kF32;
};

class Repack : public ::testing::Test {
 protected:
  TensorSourcePtr random_bytes(int64_t rows, int64_t columns, DType dtype = DType::kU8) {
    std::vector<std::byte> bytes(static_cast<size_t>(rows * columns * bits_of(dtype) / 8));
    for (std::byte& each : bytes) each = static_cast<std::byte>(random_() % 0x70);  // no NaN of floats
    return literal(std::move(bytes), dtype, {rows, columns}).value();
  }

  /// Integers of so many bits in a byte each, as packed ones are read.
  TensorSourcePtr integers(int bits, int64_t rows, int64_t columns) {
    if (bits == 8) return random_bytes(rows, columns);
    TensorSourcePtr words = random_bytes(columns, rows / 2);
    TensorSourcePtr values = unpacked(reinterpreted(words, DType::kU4).value(), DType::kU8).value();
    return transposed(reshaped(values, {columns, rows}).value(), {1, 0}).value();
  }

  TensorSourcePtr weight(const Made& how) {
    const int64_t groups = (how.columns + how.block - 1) / how.block;
    TensorSourcePtr values = integers(how.bits, how.rows, how.columns);
    TensorSourcePtr scales = random_bytes(how.rows, groups, how.scales);
    TensorSourcePtr zeros = how.has_zeros ? integers(how.bits, how.rows, groups) : nullptr;
    return dequantized(values, scales, zeros, {{1, how.block}, how.zero, how.modulus, how.dtype}).value();
  }

  bool is_kept(const Made& how, DType scales = DType::kF32) {
    TensorSourcePtr source = weight(how);
    EXPECT_TRUE(is_dequantized(*source));
    return repacked(source, scales).value().has_value();
  }

 private:
  std::mt19937 random_{7};
};

/// (integer - zero point) * scale, from what kernels are given.
std::vector<std::byte> computed(const RepackedWeight& weight, int64_t rows, int64_t columns) {
  auto integers = all_of(*weight.integers), scales = all_of(*weight.scales);
  auto zeros = weight.zero_points ? all_of(*weight.zero_points) : std::vector<std::byte>();
  const int64_t blocks = columns / weight.block;
  auto value = [&](const std::vector<std::byte>& from, int64_t row, int64_t index, int64_t count) {
    const int64_t width = (count * weight.bits + 7) / 8;  // of a row, in bytes
    auto byte = std::to_integer<int>(from[static_cast<size_t>(row * width + index * weight.bits / 8)]);
    return weight.bits == 8 ? byte : index % 2 == 0 ? byte & 15 : byte >> 4;
  };
  std::vector<std::byte> result(static_cast<size_t>(rows * columns) * sizeof(float));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t block = column / weight.block;
      float scale = 0;
      std::memcpy(&scale, scales.data() + static_cast<size_t>(row * blocks + block) * sizeof(float), sizeof(float));
      const int zero = zeros.empty() ? 1 << (weight.bits - 1) : value(zeros, row, block, blocks);
      const float element = static_cast<float>(value(integers, row, column, columns) - zero) * scale;
      std::memcpy(result.data() + static_cast<size_t>(row * columns + column) * sizeof(float), &element,
                  sizeof element);
    }
  }
  return result;
}

TEST_F(Repack, moves_bits_and_changes_no_value) {
  const Made cases[] = {{},
                        {.zero = 1, .modulus = 16},
                        {.zero = 8, .has_zeros = false},
                        {.bits = 8},
                        {.bits = 8, .zero = 1, .modulus = 256},
                        {.bits = 8, .zero = 128, .has_zeros = false},
                        {.columns = 64, .block = 32, .scales = DType::kBF16},
                        {.columns = 256, .block = 256, .scales = DType::kF32}};
  for (const Made& how : cases) {
    TensorSourcePtr source = weight(how);
    auto found = repacked(source, DType::kF32).value();
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->bits, how.bits);
    EXPECT_EQ(found->block, how.block);
    EXPECT_EQ(found->zero_points != nullptr, how.has_zeros);
    EXPECT_EQ(computed(*found, how.rows, how.columns), all_of(*source));
  }
}

TEST_F(Repack, rows_of_several_are_one) {
  TensorSourcePtr joined = concatenated({weight({}), weight({.rows = 4})}, 0).value();
  EXPECT_TRUE(is_dequantized(*joined));
  auto found = repacked(joined, DType::kF32).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(computed(*found, 12, 48), all_of(*joined));
  TensorSourcePtr mixed = concatenated({weight({}), weight({.block = 48})}, 0).value();
  EXPECT_FALSE(repacked(mixed, DType::kF32).value().has_value());
  TensorSourcePtr beside = concatenated({weight({}), weight({})}, 1).value();
  EXPECT_FALSE(repacked(beside, DType::kF32).value().has_value());
}

TEST_F(Repack, leaves_what_kernels_do_not_take) {
  EXPECT_TRUE(is_kept({}, DType::kF16));
  EXPECT_FALSE(is_kept({.scales = DType::kBF16}, DType::kF16)) << "bf16 is not exact in f16";
  EXPECT_FALSE(is_kept({.block = 48})) << "no power of two";
  EXPECT_FALSE(is_kept({.columns = 40})) << "the last block is cut short";
  EXPECT_FALSE(is_kept({.block = 8, .scales = DType::kF32}));
  EXPECT_FALSE(is_kept({.zero = 7, .has_zeros = false})) << "not in the middle";
  EXPECT_FALSE(is_kept({.zero = 1})) << "16 may be a zero point";
  auto plain = literal(std::vector<std::byte>(64), DType::kF32, {4, 4}).value();
  EXPECT_FALSE(is_dequantized(*plain));
  EXPECT_FALSE(repacked(plain, DType::kF32).value().has_value());
}

}  // namespace
}  // namespace argosy
