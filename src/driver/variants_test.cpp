#include "driver/variants.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"

namespace argosy {
namespace {

TEST(Variants, are_read_in_the_order_that_is_asked_for) {
  EXPECT_EQ(*read_variants("q4f16,fp32"), (std::vector<std::string>{"q4f16", "fp32"}));
  EXPECT_EQ(*read_variants("all"), (std::vector<std::string>{"fp32", "fp16", "q4", "q4f16", "q8"}));
  EXPECT_TRUE(find_variant("mixed16")->is_mixed);
  EXPECT_EQ(find_variant("q4f16")->dtype, "float16");
  EXPECT_EQ(find_variant("q4f16")->quantize, "int4");
  EXPECT_EQ(find_variant("bnb4")->quantize, "nf4");
  EXPECT_EQ(find_variant("q5"), nullptr);
}

TEST(Variants, share_options_but_those_of_one_alone) {
  const std::vector<std::string> q4 = {"--opset=21", "--quantize=int4", "--quantize-block=32", "--dtype=float32"},
                                 bnb4 = {"--opset=21", "--quantize=nf4", "--quantize-block=64", "--dtype=float32"};
  const std::vector<std::string> names = {"q4", "bnb4"};
  const std::vector<std::span<const std::string>> differing = {q4, bnb4}, equal = {q4, q4};
  EXPECT_EQ(options_of_variants(names, differing), (std::vector<std::string>{"--dtype=q4,bnb4", "--opset=21"}));
  EXPECT_EQ(options_of_variants(names, equal),
            (std::vector<std::string>{"--dtype=q4,bnb4", "--opset=21", "--quantize-block=32"}));
}

TEST(Variants, rejects_what_is_none) {
  for (const char* text : {"", "fp32,", "q5", "fp32 ,q4"})
    expect_error(read_variants(text), ErrorCode::kInvalidInput, "is no variant");
  expect_error(read_variants("q4,q4"), ErrorCode::kInvalidInput, "twice");
}

}  // namespace
}  // namespace argosy
