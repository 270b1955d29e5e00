#include "driver/dim_limits.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"
#include "ir/text.h"

namespace argosy {
namespace {

TEST(DimLimits, are_numbers_and_ranges) {
  auto limits = read_dim_limits("batch=1, sequence=2..64,past_sequence=0..,");
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->size(), 3u);
  EXPECT_TRUE(limits->at("batch").is_fixed());
  EXPECT_EQ(limits->at("sequence").min, 2);
  EXPECT_EQ(limits->at("sequence").max, 64);
  EXPECT_FALSE(limits->at("past_sequence").max.has_value());
  EXPECT_TRUE(read_dim_limits("")->empty());
}

TEST(DimLimits, ranges_above_one_choose_what_is_traced) {
  EXPECT_EQ(ranges_above_one("batch=2,sequence=1024..4096,past_sequence=0..8,height=1..9,width=2.."),
            "sequence=1024..4096,width=2..");
  EXPECT_EQ(ranges_above_one(""), "");
  EXPECT_EQ(ranges_above_one("batch=x"), "batch=x");
}

TEST(DimLimits, rejects_what_is_no_size) {
  for (const char* text : {"batch", "batch=", "=1", "batch=-1", "batch=4..2", "batch=..4", "batch=1x", "batch=1...3"}) {
    expect_error(read_dim_limits(text), ErrorCode::kInvalidInput, "is not a size of a dim");
  }
  expect_error(read_dim_limits("batch=1,batch=2"), ErrorCode::kInvalidInput, "twice");
}

TEST(DimLimits, rejects_names_and_sizes_that_a_program_does_not_have) {
  auto program = parse(R"(schema aten::relu(Tensor self) -> Tensor
symbol s0 positive in [1, 8] as "batch"
graph (%x: f32[s0, 4]) {
  %y: f32[s0, 4] = aten.relu.default(self=%x)
  return %y
})");
  ASSERT_TRUE(program) << program.error().message;
  auto check = [&](const char* shape) { return check_dim_limits(*program, *read_dim_limits(shape)); };
  EXPECT_TRUE(check("batch=1"));
  EXPECT_TRUE(check("batch=4..100"));
  expect_error(check("batsh=1"), ErrorCode::kInvalidInput, "no dim \"batsh\"");
  EXPECT_EQ(check("batsh=1").error().hint, "it has batch");
  expect_error(check("batch=0"), ErrorCode::kInvalidInput, "leaves the dim no size");
  expect_error(check("batch=9.."), ErrorCode::kInvalidInput, "1 to 8");
}

}  // namespace
}  // namespace argosy
