#include "tensor/blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tensor/box.h"
#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

constexpr BlockFormat kFormats[] = {BlockFormat::kQ40, BlockFormat::kQ41, BlockFormat::kQ50, BlockFormat::kQ51,
                                    BlockFormat::kQ80, BlockFormat::kQ4K, BlockFormat::kQ5K, BlockFormat::kQ6K};

std::vector<float> decoded(BlockFormat kind, const std::vector<uint8_t>& block) {
  std::vector<std::byte> bytes(static_cast<size_t>(layout_of(kind).bytes));
  std::memcpy(bytes.data(), block.data(), std::min(block.size(), bytes.size()));
  std::vector<float> values(static_cast<size_t>(layout_of(kind).values));
  decode_block(kind, bytes.data(), values.data());
  return values;
}

// 0x3800 is 0.5, 0xc000 is -2 as f16; what all types give is compared with a reference in tests/capture/test_gguf.py.
TEST(BlocksTest, decodes_values_by_hand) {
  std::vector<float> q4_0 = decoded(BlockFormat::kQ40, {0x00, 0x38, 0xf3});
  EXPECT_EQ(q4_0[0], -2.5f);  // (3 - 8) / 2
  EXPECT_EQ(q4_0[16], 3.5f);  // (15 - 8) / 2
  EXPECT_EQ(q4_0[1], -4.0f);
  std::vector<float> q5_1 = decoded(BlockFormat::kQ51, {0x00, 0x38, 0x00, 0xc0, 0x01, 0x00, 0x01, 0x00, 0x21});
  EXPECT_EQ(q5_1[0], 6.5f);   // (16 + 1) / 2 - 2
  EXPECT_EQ(q5_1[16], 7.0f);  // (16 + 2) / 2 - 2
  EXPECT_EQ(q5_1[1], -2.0f);
  std::vector<float> q8_0 = decoded(BlockFormat::kQ80, {0x00, 0x38, 0xff, 0x80});
  EXPECT_EQ(q8_0[0], -0.5f);
  EXPECT_EQ(q8_0[1], -64.0f);
}

TEST(BlocksTest, takes_scales_that_are_subnormal_or_infinite) {
  EXPECT_EQ(decoded(BlockFormat::kQ80, {0x01, 0x00, 0x01})[0], 0x1p-24f);
  EXPECT_EQ(decoded(BlockFormat::kQ80, {0xff, 0x83, 0x02})[0], -2 * 1023 * 0x1p-24f);
  EXPECT_EQ(decoded(BlockFormat::kQ80, {0x00, 0x7c, 0x01})[0], std::numeric_limits<float>::infinity());
}

TEST(BlocksTest, reads_any_box) {
  std::mt19937 random(1);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (BlockFormat kind : kFormats) {
    BlockLayout layout = layout_of(kind);
    PlainTensor bytes{DType::kU8, {3, 70, 3 * layout.bytes}, {}};
    bytes.bytes.resize(static_cast<size_t>(bytes.elements()));
    for (std::byte& byte : bytes.bytes) byte = static_cast<std::byte>(random() % 0x7b);  // no NaN, no infinity
    PlainTensor expected{DType::kF32, {3, 70, 3 * layout.values}, {}};
    expected.bytes.resize(static_cast<size_t>(expected.elements()) * sizeof(float));
    for (int64_t block = 0; block < 3 * 70 * 3; ++block) {
      std::vector<float> values(static_cast<size_t>(layout.values));
      decode_block(kind, bytes.bytes.data() + block * layout.bytes, values.data());
      std::memcpy(expected.bytes.data() + block * layout.values * 4, values.data(), values.size() * sizeof(float));
    }
    auto source = blocks_decoded(std::make_shared<CountingSource>(bytes, "b"), kind);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(collect(**source).value(), expected.bytes);
    for (int round = 0; round < 20; ++round) {
      Box box{{0, 0, 0}, {1, 1, 1}};
      for (size_t d = 0; d < 3; ++d) {
        box.start[d] = pick(0, expected.shape[d] - 1);
        box.extent[d] = pick(1, expected.shape[d] - box.start[d]);
      }
      std::vector<std::byte> out(static_cast<size_t>(box_elements(box)) * sizeof(float));
      std::vector<std::byte> room((*source)->scratch_for(box_elements(box)) + 16);
      auto aligned = (16 - reinterpret_cast<uintptr_t>(room.data()) % 16) % 16;
      std::span<std::byte> usable = std::span(room).subspan(aligned, room.size() - 16);
      Scratch scratch(usable);
      ASSERT_TRUE((*source)->read(box, out, scratch).has_value());
      size_t at = 0;
      for (int64_t i = 0; i < box_elements(box); ++i, at += 4) {
        std::vector<int64_t> index = {box.start[0] + i / box.extent[2] / box.extent[1],
                                      box.start[1] + i / box.extent[2] % box.extent[1],
                                      box.start[2] + i % box.extent[2]};
        ASSERT_EQ(std::memcmp(&out[at], &expected.bytes[static_cast<size_t>(expected.offset(index)) * 4], 4), 0);
      }
    }
  }
}

TEST(BlocksTest, rejects_rows_that_are_no_blocks) {
  auto bytes = [](DType dtype, std::vector<int64_t> shape) {
    return std::make_shared<CountingSource>(counting_tensor(dtype, std::move(shape)), "b");
  };
  EXPECT_TRUE(blocks_decoded(bytes(DType::kU8, {2, 34}), BlockFormat::kQ80));
  EXPECT_FALSE(blocks_decoded(bytes(DType::kU8, {2, 33}), BlockFormat::kQ80));
  EXPECT_FALSE(blocks_decoded(bytes(DType::kU8, {}), BlockFormat::kQ80));
  EXPECT_FALSE(blocks_decoded(bytes(DType::kI8, {2, 34}), BlockFormat::kQ80));
  EXPECT_FALSE(blocks_decoded(bytes(DType::kU8, {2, 34}), BlockFormat::kNone));
}

}  // namespace
}  // namespace argosy
