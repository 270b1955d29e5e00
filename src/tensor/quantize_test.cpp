#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "base/check.h"
#include "tensor/quantize_source.h"
#include "tensor/source_testing.h"

namespace argosy {
namespace {

using namespace testing_sources;

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

void append(std::vector<std::byte>& to, float value) {
  std::byte bytes[4];
  std::memcpy(bytes, &value, 4);
  to.insert(to.end(), bytes, bytes + 4);
}

// Integers, scales and zero points in blocks of 4 bits, in the plainest form: by row, block and element.
Outputs plain_blocks(const PlainTensor& in, int64_t block, BlockMethod method) {
  int64_t last = in.shape.back();
  Outputs outputs(method.is_symmetric ? 2 : 3);
  for (int64_t row = 0; row < in.elements() / last; ++row) {
    std::vector<std::byte> zeros;
    for (int64_t begin = 0; begin < last; begin += block) {
      std::vector<float> values(static_cast<size_t>(block));
      std::memcpy(values.data(), in.bytes.data() + (row * last + begin) * 4,
                  static_cast<size_t>(std::min(block, last - begin)) * 4);
      std::vector<uint8_t> integers(values.size());
      BlockScale found = quantize_block(values, method, integers);
      for (int64_t i = last - begin; i < block; ++i) integers[static_cast<size_t>(i)] = 0;
      for (size_t i = 0; i < integers.size(); i += 2)
        outputs[0].push_back(static_cast<std::byte>(integers[i + 1] << 4 | integers[i]));
      append(outputs[1], found.scale);
      zeros.push_back(std::byte{found.zero});
    }
    if (method.is_symmetric) continue;
    if (zeros.size() % 2 != 0) zeros.push_back(std::byte{8});
    for (size_t i = 0; i < zeros.size(); i += 2) outputs[2].push_back(zeros[i + 1] << 4 | zeros[i]);
  }
  return outputs;
}

TEST(QuantizeTest, largest_value_is_exact_and_halves_are_rounded_away_from_zero) {
  std::vector<float> in = {-8, 0.5f, 1.5f, -0.5f, -1.5f, 0, 6.5f, 7.5f};
  std::vector<uint8_t> out(8);
  BlockScale found = quantize_block(in, {QuantizeMethod::kLargest}, out);
  EXPECT_EQ(found.scale, 1.0f);
  EXPECT_EQ(found.zero, 8);
  EXPECT_EQ(out, (std::vector<uint8_t>{0, 9, 10, 8, 7, 8, 15, 15}));
  in[0] = 8;  // the scale is negative, so that the largest is exact
  found = quantize_block(in, {QuantizeMethod::kLargest}, out);
  EXPECT_EQ(found.scale, -1.0f);
  EXPECT_EQ(out[0], 0);
}

TEST(QuantizeTest, normal_names_the_nearest_of_its_floats) {
  // Halfway between two the lower one counts. 1 / 1e-40 is infinite, and zeros times it are no numbers.
  std::vector<float> in = {-2, 2, 0, -1.2f, 0.5f, 0.2405105f, -0.09105f, -0.0910500362f};
  std::vector<uint8_t> out(8);
  BlockScale found = quantize_block(in, {QuantizeMethod::kNormal}, out);
  EXPECT_EQ(found.scale, 2.0f);
  EXPECT_EQ(out, (std::vector<uint8_t>{0, 15, 7, 2, 10, 8, 7, 6}));
  EXPECT_EQ(quantize_block(std::vector<float>(8), {QuantizeMethod::kNormal}, out).scale, 0.0f);
  EXPECT_EQ(out, std::vector<uint8_t>(8, 7));
  in = {1e-40f, 0, 0, 0, 0, 0, 0, -1e-41f};
  EXPECT_EQ(quantize_block(in, {QuantizeMethod::kNormal}, out).scale, 1e-40f);
  EXPECT_EQ(out, (std::vector<uint8_t>{15, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(QuantizeTest, normal_streams_the_first_of_two_in_the_high_half) {
  BlockQuantization how{{QuantizeMethod::kNormal}, 16, QuantizedForm::kSwapped};
  PlainTensor tensor = random_floats({5, 48}, 11);
  Outputs expected = plain_blocks(tensor, 16, how.method);
  for (std::byte& each : expected[0]) each = each << 4 | each >> 4;
  auto source = std::make_shared<CountingSource>(tensor, "w");
  auto outputs = collect(**quantized_blocks(source, how), 1400);
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  EXPECT_EQ(*outputs, expected);
  how.form = QuantizedForm::kBlocks;
  EXPECT_FALSE(quantized_blocks(source, how).has_value());
}

TEST(QuantizeTest, every_method_stays_within_its_step) {
  for (QuantizeMethod method :
       {QuantizeMethod::kFitted, QuantizeMethod::kLargest, QuantizeMethod::kNearest, QuantizeMethod::kWeighted}) {
    for (bool is_symmetric : {true, false}) {
      if (is_symmetric != (method == QuantizeMethod::kFitted) && method == QuantizeMethod::kFitted) continue;
      if (is_symmetric && method == QuantizeMethod::kWeighted) continue;
      for (int bits : {4, 8}) {
        PlainTensor tensor = random_floats({64}, 3);
        std::vector<float> in(64);
        std::memcpy(in.data(), tensor.bytes.data(), 256);
        std::vector<uint8_t> out(64);
        BlockScale found = quantize_block(in, {method, bits, is_symmetric}, out);
        double error = 0, total = 0;
        for (size_t i = 0; i < in.size(); ++i) {
          double back = (static_cast<double>(out[i]) - found.zero) * found.scale;
          error += (in[i] - back) * (in[i] - back);
          total += static_cast<double>(in[i]) * in[i];
        }
        EXPECT_LT(error, total * (bits == 4 ? 0.02 : 1e-4)) << static_cast<int>(method) << " " << bits;
      }
    }
  }
}

TEST(QuantizeTest, weighted_is_better_than_largest) {
  double errors[2] = {};
  for (uint32_t seed = 0; seed < 50; ++seed) {
    PlainTensor tensor = random_floats({32}, seed);
    std::vector<float> in(32);
    std::memcpy(in.data(), tensor.bytes.data(), 128);
    std::vector<uint8_t> out(32);
    int k = 0;
    for (QuantizeMethod method : {QuantizeMethod::kLargest, QuantizeMethod::kWeighted}) {
      BlockScale found = quantize_block(in, {method}, out);
      for (size_t i = 0; i < in.size(); ++i) {
        double back = (static_cast<double>(out[i]) - found.zero) * found.scale;
        errors[k] += (1 + std::fabs(in[i])) * std::pow(in[i] - back, 2);
      }
      ++k;
    }
  }
  EXPECT_LT(errors[1], errors[0]);
}

TEST(QuantizeTest, rejects_nan_and_infinity) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (QuantizeMethod method :
         {QuantizeMethod::kLargest, QuantizeMethod::kNearest, QuantizeMethod::kWeighted, QuantizeMethod::kNormal}) {
      std::vector<float> in = {1, bad, 2, 0, 0, 0, 0, 0};
      std::vector<uint8_t> out(8);
      EXPECT_TRUE(std::isnan(quantize_block(in, {method}, out).scale));
    }
    PlainTensor tensor = random_floats({3, 2, 16}, 1);
    std::memcpy(tensor.bytes.data() + (1 * 32 + 16 + 9) * 4, &bad, 4);
    auto group = *quantized_blocks(std::make_shared<CountingSource>(tensor, "w"), {.method = {}, .block = 8});
    auto result = collect(*group, 1 << 16);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message, "a NaN or an infinity in the block at [1, 1, 8] of \"w\"");
  }
}

TEST(QuantizeTest, group_streams_all_outputs_from_one_read_of_the_input) {
  for (int64_t block : {8, 16, 32}) {
    for (std::vector<int64_t> shape : {std::vector<int64_t>{7, 20}, {64}, {2, 3, 33}, {4, 1}}) {
      for (bool is_symmetric : {true, false}) {
        BlockMethod method{QuantizeMethod::kLargest, 4, is_symmetric};
        PlainTensor tensor = random_floats(shape, 5);
        Outputs expected = plain_blocks(tensor, block, method);
        for (size_t scratch : {1400, 4096, 1 << 20}) {
          auto source = std::make_shared<CountingSource>(tensor, "w");
          auto group = *quantized_blocks(source, {method, block});
          auto outputs = collect(*group, scratch);
          ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
          ASSERT_EQ(*outputs, expected);
          EXPECT_EQ(source->elements_read, tensor.elements());
          EXPECT_TRUE(scratch < (1 << 20) || source->reads == 1);
        }
      }
    }
  }
}

TEST(QuantizeTest, outputs_can_be_read_alone_by_any_box) {
  std::mt19937 random(6);
  PlainTensor tensor = random_floats({5, 4, 37}, 7);
  auto source = std::make_shared<CountingSource>(tensor, "w");
  for (int64_t block : {8, 16}) {
    BlockMethod method{QuantizeMethod::kLargest, 4, false};
    Outputs expected = plain_blocks(tensor, block, method);
    auto group = *quantized_blocks(source, {method, block});
    for (size_t output = 0; output < 3; ++output) {
      TensorSourcePtr alone = group_output(group, output);
      EXPECT_EQ(alone->group(), group);
      EXPECT_EQ(alone->group_index(), output);
      EXPECT_EQ(*collect(*alone, 2000), expected[output]);
      PlainTensor plain{alone->dtype(), {alone->shape().begin(), alone->shape().end()}, expected[output]};
      for (int round = 0; round < 100; ++round) {
        PlainTensor part = plain;
        Box box;
        for (size_t d = 0; d < plain.shape.size(); ++d) {
          auto size = part.shape[d];
          box.extent.push_back(1 + static_cast<int64_t>(random() % static_cast<uint32_t>(size)));
          box.start.push_back(static_cast<int64_t>(random() % static_cast<uint32_t>(size - box.extent[d] + 1)));
          part = plain_slice(part, d, box.start[d], box.extent[d]);
        }
        std::vector<std::byte> out(part.bytes.size());
        ExactScratch exact(alone->scratch_for(box_elements(box)));
        ASSERT_TRUE(alone->read(box, out, exact.scratch).has_value());
        ASSERT_EQ(out, part.bytes);
      }
    }
  }
}

TEST(QuantizeTest, takes_half_types_inside_recipes_and_any_float_mode) {
  PlainTensor tensor = random_floats({6, 56}, 8);
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    PlainTensor half = plain_cast(tensor, dtype);
    Outputs expected = plain_blocks(plain_cast(plain_transpose(half, {1, 0}), DType::kF32), 8, {});
    auto group =
        *quantized_blocks(*transposed(std::make_shared<CountingSource>(half, "w"), {1, 0}), {.method = {}, .block = 8});
    std::fesetround(FE_UPWARD);
    auto outputs = collect(*group, 1024);
    std::fesetround(FE_TONEAREST);
    ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
    EXPECT_EQ(*outputs, expected);
  }
}

TEST(QuantizeTest, rejects_what_cannot_be_quantised) {
  auto source = std::make_shared<CountingSource>(random_floats({4, 8}, 9), "w");
  EXPECT_FALSE(quantized_blocks(source, {.method = {}, .block = 0}).has_value());
  EXPECT_FALSE(quantized_blocks(source, {.method = {}, .block = 12}).has_value());
  EXPECT_FALSE(quantized_blocks(source, {.method = {QuantizeMethod::kWeighted}, .block = 512}).has_value());
  EXPECT_EQ(quantized_blocks(*shape_only(DType::kF64, {4}, "w"), {}).error().message, "cannot quantise f64[4]");
  EXPECT_FALSE(quantized_blocks(*shape_only(DType::kF32, {}, "w"), {}).has_value());
  auto group = *quantized_blocks(source, {.method = {}, .block = 8});
  auto result = collect(*group, 40);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("too small"), std::string::npos);
  EXPECT_THROW((void)group_output(group, 2), InternalError);
}

}  // namespace
}  // namespace argosy
