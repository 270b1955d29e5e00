#include "tensor/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tensor/box.h"
#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

template <class T>
PlainTensor plain(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  PlainTensor tensor{dtype, std::move(shape), {}};
  tensor.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

TensorSourcePtr memory(const PlainTensor& tensor, const std::string& name = "t") {
  return std::make_shared<CountingSource>(tensor, name);
}

template <class T>
T at(const PlainTensor& tensor, const std::vector<int64_t>& index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + static_cast<size_t>(tensor.offset(index)) * sizeof(T), sizeof(T));
  return value;
}

// Ranges, boxes and small scratches all give what reading everything gives.
void expect_reads_alike(const TensorSource& source, const std::vector<std::byte>& expected, std::mt19937& random) {
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  auto all = collect(source);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(*all, expected) << source.recipe();
  if (source.elements() == 0) return;
  int64_t size = bits_of(source.dtype()) / 8;
  for (int i = 0; i < 4; ++i) {
    int64_t first = pick(0, source.elements() - 1), count = pick(1, source.elements() - first);
    size_t least = Scratch::cost(static_cast<size_t>(size)) + source.scratch_for(1);
    auto part = collect(source, first, count, least + static_cast<size_t>(pick(0, 400)));
    ASSERT_TRUE(part) << part.error().message;
    ASSERT_TRUE(std::equal(part->begin(), part->end(), expected.begin() + first * size)) << source.recipe();
    Box box;
    for (int64_t dim : source.shape()) {
      box.start.push_back(pick(0, dim - 1));
      box.extent.push_back(pick(1, dim - box.start.back()));
    }
    std::vector<std::byte> out(static_cast<size_t>(box_elements(box) * size));
    ExactScratch scratch(source.scratch_for(box_elements(box)));
    ASSERT_TRUE(source.read(box, out, scratch.scratch));
    std::byte* next = out.data();
    BoxRuns runs(source.shape(), box.start, box.extent);
    for (BoxRuns::Strip strip; runs.next(strip);) {
      for (int64_t k = 0; k < strip.count; ++k, next += runs.run() * size) {
        const std::byte* from = expected.data() + (strip.offset + k * strip.stride) * size;
        ASSERT_EQ(std::memcmp(next, from, static_cast<size_t>(runs.run() * size)), 0) << source.recipe();
      }
    }
  }
}

TEST(DequantizeTest, computes_in_blocks_of_all_dims) {
  std::mt19937 random(1);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int round = 0; round < 400; ++round) {
    std::vector<int64_t> shape, block, grid;
    for (int64_t d = pick(1, 3); d > 0; --d) {
      shape.push_back(pick(0, 20) == 0 ? 0 : pick(1, d == 1 ? 70 : 7));
      block.push_back(pick(0, 2) == 0 ? 1 : pick(1, 40));
      grid.push_back((shape.back() + block.back() - 1) / block.back());
    }
    PlainTensor values{DType::kI8, shape, {}}, scales{DType::kF32, grid, {}}, zeros{DType::kU8, grid, {}};
    values.bytes.resize(static_cast<size_t>(values.elements()));
    for (std::byte& byte : values.bytes) byte = static_cast<std::byte>(random());
    std::vector<float> factors(static_cast<size_t>(scales.elements()));
    for (float& factor : factors) factor = std::ldexp(static_cast<float>(random() % 10000) - 5000, -20);
    scales = plain(DType::kF32, grid, factors);
    zeros.bytes.resize(static_cast<size_t>(zeros.elements()));
    for (std::byte& byte : zeros.bytes) byte = static_cast<std::byte>(random() % 16);
    bool has_zeros = pick(0, 1) == 1, wraps = has_zeros && pick(0, 1) == 1;
    static const DType targets[] = {DType::kF32, DType::kF16, DType::kBF16};
    Dequantization how{block, pick(0, 2), wraps ? 16 : 0, targets[pick(0, 2)]};
    PlainTensor floats{DType::kF32, shape, {}};
    for (int64_t i = 0; i < values.elements(); ++i) {
      std::vector<int64_t> index = values.index(i), of_block = index;
      for (size_t d = 0; d < index.size(); ++d) of_block[d] /= block[d];
      int64_t zero = how.zero + (has_zeros ? at<uint8_t>(zeros, of_block) : 0);
      if (wraps) zero %= 16;
      float value = static_cast<float>(at<int8_t>(values, index) - zero) * at<float>(scales, of_block);
      floats.bytes.resize(floats.bytes.size() + 4);
      std::memcpy(floats.bytes.data() + floats.bytes.size() - 4, &value, 4);
    }
    PlainTensor expected = how.dtype == DType::kF32 ? floats : plain_cast(floats, how.dtype);
    auto source = dequantized(memory(values), memory(scales), has_zeros ? memory(zeros) : nullptr, how);
    ASSERT_TRUE(source) << source.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_reads_alike(**source, expected.bytes, random));
  }
}

TEST(DequantizeTest, goes_through_several_tiles) {
  std::mt19937 random(2);
  std::vector<uint8_t> bytes(300 * 1001);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 0x7f);
  std::vector<float> factors(3 * 8);
  for (float& factor : factors) factor = std::ldexp(static_cast<float>(random() % 1000), -10);
  PlainTensor values = plain(DType::kF8E4M3FN, {300, 1001}, bytes), scales = plain(DType::kF32, {3, 8}, factors);
  auto source = dequantized(memory(values), memory(scales), nullptr, {{128, 128}, 0, 0, DType::kF32});
  ASSERT_TRUE(source);
  auto floats = converted(memory(values), DType::kF32);
  std::vector<std::byte> expected = collect(**floats).value();
  for (size_t i = 0; i < bytes.size(); ++i) {
    float value;
    std::memcpy(&value, expected.data() + 4 * i, 4);
    value *= factors[i / 1001 / 128 * 8 + i % 1001 / 128];
    std::memcpy(expected.data() + 4 * i, &value, 4);
  }
  ASSERT_NO_FATAL_FAILURE(expect_reads_alike(**source, expected, random));
}

TEST(DequantizeTest, takes_words_apart_low_bits_first) {
  std::mt19937 random(3);
  std::vector<int32_t> words(5 * 6);
  for (int32_t& word : words) word = static_cast<int32_t>(random());
  PlainTensor packed = plain(DType::kI32, {5, 6}, words);
  for (DType dtype : {DType::kU4, DType::kU2, DType::kU8}) {
    int bits = bits_of(dtype), parts = 32 / bits;
    auto source = reinterpreted(memory(packed), dtype);
    ASSERT_TRUE(source);
    EXPECT_EQ((*source)->shape()[2], parts);
    // As GPTQ has them: what one word holds are rows.
    auto rows = reshaped(transposed(*source, {1, 0, 2}).value(), {6, 5 * parts});
    ASSERT_TRUE(rows);
    auto bytes = dtype == DType::kU8 ? *rows : converted(*rows, DType::kU8).value();
    std::vector<std::byte> expected;
    for (size_t column = 0; column < 6; ++column) {
      for (size_t i = 0; i < 5 * static_cast<size_t>(parts); ++i) {
        auto word = static_cast<uint32_t>(words[i / static_cast<size_t>(parts) * 6 + column]);
        uint32_t value = word >> (static_cast<int>(i) % parts * bits) & ((1u << bits) - 1);
        expected.push_back(static_cast<std::byte>(value));
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_reads_alike(*bytes, expected, random));
  }
  auto same = reinterpreted(memory(packed), DType::kF32);
  ASSERT_TRUE(same);
  EXPECT_EQ(collect(**same).value(), packed.bytes);
}

TEST(DequantizeTest, picks_some_parts_of_words) {
  std::mt19937 random(4);
  PlainTensor packed = counting_tensor(DType::kI32, {3, 7});
  auto source = reinterpreted(memory(packed), DType::kU8);
  ASSERT_TRUE(source);
  ASSERT_NO_FATAL_FAILURE(expect_reads_alike(**source, packed.bytes, random));
}

TEST(DequantizeTest, gathers_along_the_last_dim) {
  std::mt19937 random(5);
  for (DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
    PlainTensor table = counting_tensor(dtype, {4, 3, 9});
    std::vector<int32_t> chosen(25);
    for (int32_t& index : chosen) index = static_cast<int32_t>(random() % 9);
    std::vector<int64_t> wide(chosen.begin(), chosen.end());
    PlainTensor expected = gather(dtype, {4, 3, 25}, [&](std::vector<int64_t> index) {
      index[2] = chosen[static_cast<size_t>(index[2])];
      return Pick{&table, index};
    });
    for (const PlainTensor& indices : {plain(DType::kI32, {25}, chosen), plain(DType::kI64, {25}, wide)}) {
      auto source = gathered(memory(table), memory(indices, "i"));
      ASSERT_TRUE(source);
      ASSERT_NO_FATAL_FAILURE(expect_reads_alike(**source, expected.bytes, random));
    }
  }
}

TEST(DequantizeTest, rejects_an_index_out_of_range) {
  PlainTensor table = counting_tensor(DType::kF16, {2, 4});
  for (int32_t wrong : {-1, 4}) {
    auto source = gathered(memory(table), memory(plain<int32_t>(DType::kI32, {3}, {0, wrong, 1}), "g_idx"));
    ASSERT_TRUE(source);
    auto read = collect(**source);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorruptFile);
    EXPECT_NE(read.error().message.find("g_idx"), std::string::npos);
  }
}

TEST(DequantizeTest, looks_bytes_up_in_a_table) {
  std::mt19937 random(6);
  for (DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
    for (int64_t size : {int64_t{1}, int64_t{16}, int64_t{256}}) {
      PlainTensor table = counting_tensor(dtype, {size});
      std::vector<uint8_t> codes(200'000);  // several tiles
      for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % static_cast<uint64_t>(size));
      PlainTensor expected = gather(dtype, {200'000}, [&](std::vector<int64_t> index) {
        return Pick{&table, {codes[static_cast<size_t>(index[0])]}};
      });
      auto source = gathered(memory(table), memory(plain(DType::kU8, {200'000}, codes), "codes"));
      ASSERT_TRUE(source);
      ASSERT_NO_FATAL_FAILURE(expect_reads_alike(**source, expected.bytes, random));
    }
  }
}

TEST(DequantizeTest, rejects_bytes_beyond_the_table) {
  auto table = memory(counting_tensor(DType::kF32, {16}));
  auto source = gathered(table, memory(plain<uint8_t>(DType::kU8, {3}, {15, 16, 0}), "codes"));
  ASSERT_TRUE(source);
  auto read = collect(**source);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorruptFile);
  EXPECT_NE(read.error().message.find("index 16 of"), std::string::npos) << read.error().message;
  auto codes = memory(plain<uint8_t>(DType::kU8, {2}, {0, 0}));
  EXPECT_FALSE(gathered(memory(counting_tensor(DType::kF32, {257})), codes));
  EXPECT_FALSE(gathered(memory(counting_tensor(DType::kF32, {4, 4})), codes));
  EXPECT_FALSE(gathered(table, memory(plain<uint8_t>(DType::kU8, {2, 1}, {0, 0}))));
}

TEST(DequantizeTest, scales_and_shifts) {
  std::mt19937 random(7);
  std::vector<float> values(150'000);
  for (float& value : values) value = std::ldexp(static_cast<float>(random() % 100'000), -15);
  PlainTensor floats = plain(DType::kF32, {3, 50'000}, values);
  for (float& value : values) value = value * 0.007874016f + 1.3f;
  PlainTensor expected = plain(DType::kF32, {3, 50'000}, values);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    auto source = affine(memory(floats), 0.007874016f, 1.3f, dtype);
    ASSERT_TRUE(source);
    const PlainTensor& wanted = dtype == DType::kF32 ? expected : plain_cast(expected, dtype);
    ASSERT_NO_FATAL_FAILURE(expect_reads_alike(**source, wanted.bytes, random));
  }
  EXPECT_FALSE(affine(memory(floats), 1, 0, DType::kF64));
  EXPECT_FALSE(affine(memory(counting_tensor(DType::kF16, {2})), 1, 0, DType::kF32));
  EXPECT_FALSE(affine(memory(floats), 1, std::numeric_limits<float>::infinity(), DType::kF32));
  EXPECT_FALSE(affine(memory(floats), std::numeric_limits<float>::quiet_NaN(), 0, DType::kF32));
}

TEST(DequantizeTest, rejects_scales_that_do_not_fit) {
  auto values = memory(counting_tensor(DType::kI8, {6, 8}));
  auto scales = [](std::vector<int64_t> shape) { return memory(counting_tensor(DType::kF32, std::move(shape))); };
  EXPECT_TRUE(dequantized(values, scales({2, 2}), nullptr, {{4, 4}, 0, 0, DType::kF32}));
  EXPECT_FALSE(dequantized(values, scales({1, 2}), nullptr, {{4, 4}, 0, 0, DType::kF32}));
  EXPECT_FALSE(dequantized(values, scales({4}), nullptr, {{4, 4}, 0, 0, DType::kF32}));
  EXPECT_FALSE(dequantized(values, scales({2, 2}), scales({2, 3}), {{4, 4}, 0, 0, DType::kF32}));
  EXPECT_FALSE(dequantized(values, scales({2, 2}), nullptr, {{4, 0}, 0, 0, DType::kF32}));
  EXPECT_FALSE(dequantized(values, scales({2, 2}), nullptr, {{4}, 0, 0, DType::kF32}));
}

TEST(DequantizeTest, rejects_dtypes_and_zero_points_that_it_cannot_compute_with) {
  auto values = memory(counting_tensor(DType::kI8, {6, 8}));
  auto scales = memory(counting_tensor(DType::kF32, {2, 2}));
  auto complex = memory(counting_tensor(DType::kC64, {2, 2}));
  EXPECT_FALSE(dequantized(values, scales, nullptr, {{4, 4}, 0, 0, DType::kI8}));
  EXPECT_FALSE(dequantized(values, complex, nullptr, {{4, 4}, 0, 0, DType::kF32}));
  EXPECT_FALSE(dequantized(values, scales, nullptr, {{4, 4}, 16, 16, DType::kF32}));
  EXPECT_FALSE(dequantized(values, scales, nullptr, {{4, 4}, 0, -1, DType::kF32}));
  EXPECT_FALSE(dequantized(values, scales, nullptr, {{4, 4}, int64_t{1} << 24, 0, DType::kF32}));
  auto packed = reinterpreted(values, DType::kU4);
  ASSERT_TRUE(packed);
  EXPECT_FALSE(
      dequantized(*packed, memory(counting_tensor(DType::kF32, {6, 8, 2})), nullptr, {{1, 1, 1}, 0, 0, DType::kF32}));
}

TEST(DequantizeTest, rejects_what_it_cannot_take_apart_or_index) {
  auto bytes = memory(counting_tensor(DType::kU8, {2, 4}));
  EXPECT_FALSE(reinterpreted(bytes, DType::kI32));
  EXPECT_FALSE(reinterpreted(bytes, DType::kU3));
  EXPECT_FALSE(converted(reinterpreted(bytes, DType::kU4).value(), DType::kI8));
  EXPECT_FALSE(gathered(bytes, memory(counting_tensor(DType::kF32, {3}))));
  EXPECT_FALSE(gathered(bytes, memory(counting_tensor(DType::kI32, {3, 1}))));
  EXPECT_FALSE(gathered(memory(counting_tensor(DType::kU8, {})), memory(counting_tensor(DType::kI32, {3}))));
}

}  // namespace
}  // namespace argosy
