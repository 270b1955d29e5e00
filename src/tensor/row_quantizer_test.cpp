#include "tensor/row_quantizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "tensor/cast.h"
#include "tensor/quantize_source.h"
#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

/// Integers are the values themselves, times two; `spoil` may change what is handed out.
class Doubler final : public RowQuantizer {
 public:
  explicit Doubler(int bits, bool has_zeros = false, std::function<Status(const RowsToQuantize&)> spoil = {})
      : bits_(bits), has_zeros_(has_zeros), spoil_(std::move(spoil)) {}

  std::string name() const override { return "doubler of tests 1"; }
  int bits() const override { return bits_; }
  bool has_zero_points() const override { return has_zeros_; }
  Status quantize(const RowsToQuantize& rows) const override {
    largest_batch = std::max(largest_batch.load(), rows.rows);
    EXPECT_EQ(rows.values.size(), static_cast<size_t>(rows.rows * rows.blocks * rows.block));
    EXPECT_EQ(rows.integers.size(), rows.values.size());
    EXPECT_EQ(rows.scales.size(), static_cast<size_t>(rows.rows * rows.blocks));
    EXPECT_EQ(rows.zero_points.size(), has_zeros_ ? rows.scales.size() : 0);
    for (size_t i = 0; i < rows.values.size(); ++i) rows.integers[i] = static_cast<uint8_t>(rows.values[i] * 2 + 1);
    for (size_t i = 0; i < rows.scales.size(); ++i)
      rows.scales[i] = 0.5f + static_cast<float>(i % static_cast<size_t>(rows.blocks));
    for (size_t i = 0; i < rows.zero_points.size(); ++i) rows.zero_points[i] = static_cast<uint8_t>(i % 2 + 3);
    return spoil_ ? spoil_(rows) : Status{};
  }

  mutable std::atomic<int64_t> largest_batch = 0;

 private:
  int bits_;
  bool has_zeros_;
  std::function<Status(const RowsToQuantize&)> spoil_;
};

/// [3, 40] of 0 to 7, a half more or less: in blocks of 16 the last one is half filled.
PlainTensor small_floats(DType dtype = DType::kF32) {
  PlainTensor tensor{dtype, {3, 40}, {}};
  std::vector<float> values;
  for (int i = 0; i < 120; ++i) values.push_back(static_cast<float>(i * 7 % 15) / 2);
  auto bytes = std::as_bytes(std::span(values));
  tensor.bytes.resize(static_cast<size_t>(120 * bits_of(dtype) / 8));
  if (dtype == DType::kF32) {
    tensor.bytes.assign(bytes.begin(), bytes.end());
  } else {
    cast_elements(DType::kF32, bytes, dtype, tensor.bytes);
  }
  return tensor;
}

BlockQuantization by(const Doubler& quantizer, DType scales = DType::kF32) {
  BlockQuantization how;
  how.block = 16;
  how.method.scales = scales;
  how.own = std::shared_ptr<const RowQuantizer>(&quantizer, [](const RowQuantizer*) {});
  return how;
}

TEST(RowQuantizerTest, gives_integers_scales_and_zero_points) {
  Doubler quantizer(4, true);
  auto group = *quantized_blocks(std::make_shared<CountingSource>(small_floats(), "w"), by(quantizer));
  ASSERT_EQ(group->size(), 3U);
  EXPECT_NE(group->recipe().find("\"doubler of tests 1\" with zero points bits=4, block=16"), std::string::npos)
      << group->recipe();
  auto outputs = collect(*group, 1 << 16);
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  const std::vector<std::byte>& integers = (*outputs)[0];
  ASSERT_EQ(integers.size(), 3U * 3 * 8);
  for (size_t row = 0; row < 3; ++row) {
    for (size_t i = 0; i < 48; ++i) {
      const std::byte byte = integers[row * 24 + i / 2];
      const auto found = static_cast<size_t>(i % 2 == 0 ? byte & std::byte{15} : byte >> 4);
      EXPECT_EQ(found, i < 40 ? (row * 40 + i) * 7 % 15 + 1 : 0) << row << " " << i;
    }
  }
  std::vector<float> scales(9);
  ASSERT_EQ((*outputs)[1].size(), 36U);
  std::memcpy(scales.data(), (*outputs)[1].data(), 36);
  EXPECT_EQ(scales, (std::vector<float>{0.5, 1.5, 2.5, 0.5, 1.5, 2.5, 0.5, 1.5, 2.5}));
  const std::byte even{0x43}, odd{0x34}, first{0x83}, second{0x84};
  EXPECT_EQ((*outputs)[2], (std::vector<std::byte>{even, first, odd, second, even, first}));
}

TEST(RowQuantizerTest, bytes_do_not_depend_on_memory_or_on_how_they_are_read) {
  Doubler quantizer(8);
  auto group =
      *quantized_blocks(std::make_shared<CountingSource>(small_floats(DType::kF16), "w"), by(quantizer, DType::kF16));
  auto whole = collect(*group, 1 << 16);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(quantizer.largest_batch, 3);
  EXPECT_EQ((*whole)[1].size(), 18U);
  quantizer.largest_batch = 0;
  EXPECT_EQ(*collect(*group, group->scratch_for(0, 1)), *whole);
  EXPECT_EQ(quantizer.largest_batch, 1);
  for (size_t i = 0; i < 2; ++i) {
    auto alone = collect(*group_output(group, i));
    ASSERT_TRUE(alone.has_value());
    EXPECT_EQ(*alone, (*whole)[i]);
  }
}

TEST(RowQuantizerTest, rejects_what_does_not_fit) {
  struct Case {
    std::function<Status(const RowsToQuantize&)> spoil;
    std::string said;
    DType scales = DType::kF32;
  };
  auto fails = [](const RowsToQuantize&) -> Status { return fail(ErrorCode::kIo, "it has ended"); };
  auto integer = [](const RowsToQuantize& rows) -> Status { return rows.integers[50] = 16, Status{}; };
  auto zero = [](const RowsToQuantize& rows) -> Status { return rows.zero_points[3] = 17, Status{}; };
  auto scale = [](float value) {
    return [value](const RowsToQuantize& rows) -> Status { return rows.scales[1] = value, Status{}; };
  };
  const Case cases[] = {
      {fails, "it has ended"},
      {integer, "the scheme doubler of tests 1 gives the integer 16, of 4 bits, for the block at [1, 0] of"},
      {zero, "gives the zero point 17, of 4 bits, for the block at [1, 0]"},
      {scale(std::numeric_limits<float>::quiet_NaN()), "gives the scale nan, for the block at [0, 16]"},
      {scale(-std::numeric_limits<float>::infinity()), "gives the scale -inf"},
      {scale(-70000), "gives the scale -70000, too large for f16, for the block at [0, 16]", DType::kF16},
  };
  for (const Case& each : cases) {
    Doubler quantizer(4, true, each.spoil);
    auto group = quantized_blocks(std::make_shared<CountingSource>(small_floats(), "w"), by(quantizer, each.scales));
    ASSERT_TRUE(group.has_value());
    auto outputs = collect(**group, 1 << 16);
    ASSERT_FALSE(outputs.has_value()) << each.said;
    EXPECT_NE(outputs.error().message.find(each.said), std::string::npos) << outputs.error().message;
  }
}

TEST(RowQuantizerTest, is_not_given_what_is_not_finite) {
  PlainTensor tensor = small_floats();
  const float wrong = std::numeric_limits<float>::infinity();
  std::memcpy(tensor.bytes.data() + (80 + 33) * sizeof(float), &wrong, sizeof wrong);
  Doubler quantizer(4);
  auto outputs = collect(**quantized_blocks(std::make_shared<CountingSource>(tensor, "w"), by(quantizer)), 1 << 16);
  ASSERT_FALSE(outputs.has_value());
  EXPECT_NE(outputs.error().message.find("a NaN or an infinity in the block at [2, 32]"), std::string::npos);
  EXPECT_EQ(quantizer.largest_batch, 0);
}

}  // namespace
}  // namespace argosy
