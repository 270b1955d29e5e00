#include "io/crc32.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <vector>

namespace argosy {
namespace {

uint32_t expected(uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::vector<std::byte> random_bytes(size_t size) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Crc32, has_its_published_check_value) {
  EXPECT_EQ(crc32(0, std::as_bytes(std::span("123456789", 9))), 0xCBF43926u);
  EXPECT_EQ(crc32(0, {}), 0u);
}

TEST(Crc32, is_that_of_zlib_for_every_length_and_place) {
  std::vector<std::byte> bytes = random_bytes(4096);
  for (size_t size = 0; size < 400; ++size) {
    std::span<const std::byte> part = std::span(bytes).subspan(size % 17, size);
    EXPECT_EQ(crc32(0, part), expected(0, part)) << size;
    EXPECT_EQ(crc32(0x12345678, part), expected(0x12345678, part)) << size;
  }
  EXPECT_EQ(crc32(0, bytes), expected(0, bytes));
}

TEST(Crc32, parts_combine) {
  std::vector<std::byte> bytes = random_bytes(10000);
  for (size_t cut : {size_t{0}, size_t{1}, size_t{64}, size_t{5000}, bytes.size()}) {
    std::span<const std::byte> first = std::span(bytes).first(cut), second = std::span(bytes).subspan(cut);
    EXPECT_EQ(crc32(crc32(0, first), second), crc32(0, bytes));
    EXPECT_EQ(combined_crc32(crc32(0, first), crc32(0, second), second.size()), crc32(0, bytes)) << cut;
  }
}

}  // namespace
}  // namespace argosy
