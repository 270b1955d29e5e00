#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>

#include "base/check.h"
#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

struct Outputs {
  std::vector<std::byte> weight, scales;
};

Result<Outputs> stream(const SourceGroup& group, size_t scratch_bytes) {
  Outputs outputs;
  auto append = [](std::vector<std::byte>& to) {
    return [&to](std::span<const std::byte> part) {
      to.insert(to.end(), part.begin(), part.end());
      return Status{};
    };
  };
  std::vector<ByteSink> sinks = {append(outputs.weight), append(outputs.scales)};
  ARGOSY_TRY_STATUS(group.stream_to(sinks, scratch_bytes));
  return outputs;
}

PlainTensor random_floats(std::vector<int64_t> shape, uint32_t seed) {
  PlainTensor tensor{DType::kF32, std::move(shape), {}};
  tensor.bytes.resize(static_cast<size_t>(tensor.elements()) * 4);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < tensor.bytes.size(); i += 4) {
    float value = normal(random);
    std::memcpy(tensor.bytes.data() + i, &value, 4);
  }
  return tensor;
}

// The definition, in the plainest form: by row, block and element, rounding through the library.
Outputs plain_quantize(const PlainTensor& in, int64_t block) {
  int64_t last = in.shape.back();
  Outputs outputs;
  for (int64_t row = 0; row < in.elements() / last; ++row) {
    for (int64_t begin = 0; begin < last; begin += block) {
      float largest = 0;
      std::vector<float> values(static_cast<size_t>(std::min(block, last - begin)));
      std::memcpy(values.data(), in.bytes.data() + (row * last + begin) * 4, values.size() * 4);
      for (float value : values) largest = std::max(largest, std::fabs(value));
      float scale = largest == 0 ? 1 : std::max(largest / 127, FLT_MIN);
      for (float value : values)
        outputs.weight.push_back(static_cast<std::byte>(static_cast<int8_t>(std::nearbyint(value / scale))));
      std::byte bytes[4];
      std::memcpy(bytes, &scale, 4);
      outputs.scales.insert(outputs.scales.end(), bytes, bytes + 4);
    }
  }
  return outputs;
}

TEST(QuantizeTest, rounds_half_to_even_and_keeps_zeros) {
  // Scale 1: ties go to the even neighbour.
  std::vector<float> in = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -126.5f, 126.5f, 0, -0.0f, 0.49999997f};
  std::vector<int8_t> out(in.size());
  EXPECT_EQ(quantize_block_int8(in, out), 1.0f);
  EXPECT_EQ(out, (std::vector<int8_t>{127, 0, 2, 2, 0, -2, -126, 126, 0, 0, 0}));
  in.assign(11, 0.0f);
  EXPECT_EQ(quantize_block_int8(in, out), 1.0f);
  EXPECT_EQ(out, std::vector<int8_t>(11, 0));
}

TEST(QuantizeTest, stays_within_half_a_scale_at_all_magnitudes) {
  std::mt19937 random(4);
  for (int exponent = -149; exponent <= 127; ++exponent) {
    std::vector<float> in(33);
    for (float& value : in) value = std::ldexp(static_cast<float>(random()) / 4294967296.0f * 2 - 1, exponent);
    in[7] = std::ldexp(1.0f, exponent);
    std::vector<int8_t> out(in.size());
    float scale = quantize_block_int8(in, out);
    ASSERT_GE(scale, FLT_MIN);
    for (size_t i = 0; i < in.size(); ++i) {
      ASSERT_GE(out[i], -127);
      ASSERT_LE(std::fabs(static_cast<double>(out[i]) * scale - in[i]), 0.5 * scale * (1 + 1e-5));
    }
  }
}

TEST(QuantizeTest, rejects_nan_and_infinity) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    std::vector<float> in = {1, bad, 2};
    std::vector<int8_t> out(3);
    EXPECT_TRUE(std::isnan(quantize_block_int8(in, out)));
    PlainTensor tensor = random_floats({3, 2, 8}, 1);
    std::memcpy(tensor.bytes.data() + (1 * 16 + 8 + 5) * 4, &bad, 4);
    auto group = *quantized_int8(std::make_shared<CountingSource>(tensor, "w"), 4);
    auto result = stream(*group, 1 << 16);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message, "a NaN or an infinity in the block at [1, 1, 4] of \"w\"");
  }
}

TEST(QuantizeTest, group_streams_both_outputs_from_one_read_of_the_input) {
  for (int64_t block : {1, 3, 8, 32, 100}) {
    for (std::vector<int64_t> shape : {std::vector<int64_t>{7, 20}, {64}, {2, 3, 33}, {4, 1}}) {
      PlainTensor tensor = random_floats(shape, 5);
      Outputs expected = plain_quantize(tensor, block);
      for (size_t scratch : {1400, 4096, 1 << 20}) {
        auto source = std::make_shared<CountingSource>(tensor, "w");
        auto group = *quantized_int8(source, block);
        auto outputs = stream(*group, scratch);
        ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
        ASSERT_EQ(outputs->weight, expected.weight);
        ASSERT_EQ(outputs->scales, expected.scales);
        EXPECT_EQ(source->elements_read, tensor.elements());
        EXPECT_TRUE(scratch < (1 << 20) || source->reads == 1);
      }
    }
  }
}

TEST(QuantizeTest, outputs_can_be_read_alone_by_any_box) {
  std::mt19937 random(6);
  PlainTensor tensor = random_floats({5, 4, 37}, 7);
  auto source = std::make_shared<CountingSource>(tensor, "w");
  for (int64_t block : {1, 5, 16, 40}) {
    Outputs expected = plain_quantize(tensor, block);
    auto group = *quantized_int8(source, block);
    auto weight = group_output(group, 0), scales = group_output(group, 1);
    EXPECT_EQ(weight->group(), group);
    EXPECT_EQ(scales->group_index(), 1u);
    EXPECT_EQ(*collect(*weight, 1000), expected.weight);
    EXPECT_EQ(*collect(*scales, 1000), expected.scales);
    PlainTensor plains[] = {{DType::kI8, tensor.shape, expected.weight},
                            {DType::kF32, {scales->shape().begin(), scales->shape().end()}, expected.scales}};
    for (int round = 0; round < 200; ++round) {
      for (size_t output : {0, 1}) {
        PlainTensor part = plains[output];
        Box box;
        for (size_t d = 0; d < 3; ++d) {
          auto size = part.shape[d];
          box.extent.push_back(1 + static_cast<int64_t>(random() % static_cast<uint32_t>(size)));
          box.start.push_back(static_cast<int64_t>(random() % static_cast<uint32_t>(size - box.extent[d] + 1)));
          part = plain_slice(part, d, box.start[d], box.extent[d]);
        }
        std::vector<std::byte> out(part.bytes.size());
        auto of = group_output(group, output);
        ExactScratch exact(of->scratch_for(box_elements(box)));
        ASSERT_TRUE(of->read(box, out, exact.scratch).has_value());
        ASSERT_EQ(out, part.bytes);
      }
    }
  }
}

TEST(QuantizeTest, takes_half_types_inside_recipes_and_any_float_mode) {
  PlainTensor tensor = random_floats({6, 50}, 8);
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    PlainTensor half = plain_cast(tensor, dtype);
    Outputs expected = plain_quantize(plain_cast(plain_transpose(half, {1, 0}), DType::kF32), 4);
    auto group = *quantized_int8(*transposed(std::make_shared<CountingSource>(half, "w"), {1, 0}), 4);
    std::fesetround(FE_UPWARD);
    auto outputs = stream(*group, 512);
    std::fesetround(FE_TONEAREST);
    ASSERT_TRUE(outputs.has_value());
    EXPECT_EQ(outputs->weight, expected.weight);
    EXPECT_EQ(outputs->scales, expected.scales);
  }
}

TEST(QuantizeTest, rejects_what_cannot_be_quantised) {
  auto source = std::make_shared<CountingSource>(random_floats({4, 8}, 9), "w");
  EXPECT_FALSE(quantized_int8(source, 0).has_value());
  EXPECT_FALSE(quantized_int8(source, -1).has_value());
  EXPECT_EQ(quantized_int8(*shape_only(DType::kF64, {4}, "w"), 2).error().message, "cannot quantise f64[4]");
  EXPECT_EQ(quantized_int8(*shape_only(DType::kF32, {}, "w"), 2).error().message, "cannot quantise a scalar");
  auto group = *quantized_int8(source, 8);
  auto result = stream(*group, 40);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("too small"), std::string::npos);
  EXPECT_EQ(result.error().hint, "give at least 64 bytes of scratch");
  EXPECT_TRUE(stream(*group, 64).has_value());
  EXPECT_THROW((void)group_output(group, 2), InternalError);
}

}  // namespace
}  // namespace argosy
