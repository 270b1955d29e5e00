#include "tensor/finite.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace argosy {
namespace {

/// Zeros, but for the bits of the element at `index`, with `shift` bytes before them.
template <typename Bits>
bool found(DType dtype, size_t count, size_t index, Bits element, size_t shift = 0) {
  std::vector<std::byte> bytes(shift + count * sizeof(Bits));
  std::memcpy(bytes.data() + shift + index * sizeof(Bits), &element, sizeof(Bits));
  return has_non_finite(dtype, std::span(bytes).subspan(shift));
}

TEST(Finite, nan_and_infinity_are_found_wherever_they_are) {
  for (size_t index : {size_t{0}, size_t{511}, size_t{512}, size_t{1023}, size_t{1029}}) {
    EXPECT_TRUE(found<uint32_t>(DType::kF32, 1030, index, 0x7FC00000)) << index;
    EXPECT_TRUE(found<uint32_t>(DType::kF32, 1030, index, 0xFF800000)) << index;
    EXPECT_TRUE(found<uint16_t>(DType::kF16, 1030, index, 0xFC01)) << index;
    EXPECT_TRUE(found<uint16_t>(DType::kBF16, 1030, index, 0x7F80)) << index;
    EXPECT_TRUE(found<uint64_t>(DType::kF64, 1030, index, uint64_t{0xFFF} << 52)) << index;
    EXPECT_TRUE(found<uint32_t>(DType::kF32, 1030, index, 0x7F800001, 3)) << index;
  }
}

TEST(Finite, the_largest_numbers_are_finite) {
  EXPECT_FALSE(found<uint32_t>(DType::kF32, 600, 599, 0xFF7FFFFF));
  EXPECT_FALSE(found<uint16_t>(DType::kF16, 600, 5, 0x7BFF));
  EXPECT_FALSE(found<uint16_t>(DType::kBF16, 600, 5, 0xFF7F));
  EXPECT_FALSE(found<uint64_t>(DType::kF64, 600, 5, 0x7FEFFFFFFFFFFFFF));
  EXPECT_FALSE(found<uint32_t>(DType::kI32, 600, 5, 0xFFFFFFFF));
  EXPECT_FALSE(has_non_finite(DType::kF32, {}));
}

}  // namespace
}  // namespace argosy
