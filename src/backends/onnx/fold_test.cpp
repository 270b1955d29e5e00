#include "backends/onnx/fold.h"

#include <gtest/gtest.h>

#include "backends/onnx/kernel_types.h"

namespace argosy::onnx {
namespace {

Constant ints(std::vector<int64_t> values) {
  auto size = static_cast<int64_t>(values.size());
  return {DType::kI64, {size}, std::move(values), {}};
}

std::optional<Constant> folded(std::string op, std::vector<Constant> inputs, std::vector<Attribute> attributes = {}) {
  Node node{std::move(op), "", {}, {Ref{0}}, std::move(attributes), ""};
  std::vector<const Constant*> pointers;
  for (const Constant& input : inputs) pointers.push_back(&input);
  return fold(node, pointers);
}

TEST(FoldTest, integers_divide_towards_zero_and_their_rest_has_the_sign_of_the_divisor) {
  EXPECT_EQ(folded("Div", {ints({-7, 7}), ints({2, -2})})->ints, (std::vector<int64_t>{-3, -3}));
  EXPECT_EQ(folded("Mod", {ints({-7, 7}), ints({2, -2})})->ints, (std::vector<int64_t>{1, -1}));
}

TEST(FoldTest, what_has_no_value_is_left_to_the_engine) {
  EXPECT_FALSE(folded("Div", {ints({1}), ints({0})}));
  EXPECT_FALSE(folded("Add", {ints({INT64_MAX}), ints({1})}));
  EXPECT_FALSE(folded("Gather", {ints({1, 2}), ints({2})}));
}

TEST(FoldTest, broadcasts) {
  Constant column{DType::kI64, {2, 1}, {10, 20}, {}};
  auto sum = folded("Add", {column, ints({1, 2, 3})});
  EXPECT_EQ(sum->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(sum->ints, (std::vector<int64_t>{11, 12, 13, 21, 22, 23}));
}

TEST(FoldTest, floats_are_rounded_to_their_type) {
  Constant third{DType::kF32, {}, {}, {1.0}}, three{DType::kF32, {}, {}, {3.0}};
  EXPECT_EQ(folded("Div", {third, three})->reals[0], static_cast<double>(1.0F / 3.0F));
}

TEST(FoldTest, shapes) {
  EXPECT_EQ(folded("Concat", {ints({1}), ints({2, 3})}, {{"axis", int64_t{0}}})->ints, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_TRUE(folded("Squeeze", {ints({5}), ints({0})})->shape.empty());
  EXPECT_EQ(folded("Range", {Constant{DType::kI64, {}, {3}, {}}, Constant{DType::kI64, {}, {0}, {}},
                             Constant{DType::kI64, {}, {-2}, {}}})
                ->ints,
            (std::vector<int64_t>{3, 1}));
}

TEST(FoldTest, large_results_are_left) {
  EXPECT_FALSE(folded("Range", {Constant{DType::kI64, {}, {0}, {}}, Constant{DType::kI64, {}, {1000}, {}},
                                Constant{DType::kI64, {}, {1}, {}}}));
}

TEST(FoldTest, constants_survive_being_written) {
  Constant flags{DType::kBool, {2}, {0, 1}, {}};
  auto back = read_constant(*to_source(flags));
  EXPECT_EQ(back->ints, flags.ints);
  EXPECT_EQ(back->dtype, DType::kBool);
}

TEST(KernelTypesTest, another_type_holds_every_value) {
  auto type_of = [](std::string_view op, DType dtype) { return kernel_type(*kernel_types(op), dtype, false); };
  EXPECT_EQ(type_of("Where", DType::kBool), DType::kI32);
  EXPECT_EQ(type_of("Where", DType::kF32), DType::kF32);
  EXPECT_EQ(type_of("ArgMax", DType::kI64), DType::kF64);
  EXPECT_EQ(type_of("Conv", DType::kF64), DType::kF32);
  EXPECT_EQ(type_of("Mul", DType::kBF16), DType::kF32);
  EXPECT_EQ(kernel_type(*kernel_types("Mul"), DType::kBF16, true), DType::kBF16);
}

}  // namespace
}  // namespace argosy::onnx
