#include "frontends/pt2/promotion.h"

#include <gtest/gtest.h>

#include "frontends/pt2/graph_json_testing.h"

namespace argosy {
namespace {

using T = GraphText;

struct Operand {
  DType dtype;
  bool has_dims;
};

std::optional<DType> result_of(std::initializer_list<Operand> tensors, std::initializer_list<DTypeKind> numbers = {}) {
  ResultType type;
  for (Operand operand : tensors) type.add_tensor(operand.dtype, operand.has_dims);
  for (DTypeKind kind : numbers) type.add_number(kind);
  return type.result();
}

// Expected values were taken from torch.result_type of torch 2.13.
TEST(ResultType, follows_torch) {
  EXPECT_EQ(result_of({{DType::kI64, true}, {DType::kF32, true}}), DType::kF32);
  EXPECT_EQ(result_of({{DType::kF16, true}, {DType::kBF16, true}}), DType::kF32);
  EXPECT_EQ(result_of({{DType::kF32, true}, {DType::kF64, false}}), DType::kF32);
  EXPECT_EQ(result_of({{DType::kF32, false}, {DType::kF64, false}}), DType::kF64);
  EXPECT_EQ(result_of({{DType::kI64, true}, {DType::kF64, false}}), DType::kF64);
  EXPECT_EQ(result_of({{DType::kI32, true}, {DType::kI64, false}}), DType::kI32);
  EXPECT_EQ(result_of({{DType::kBool, true}, {DType::kI32, false}}), DType::kI32);
  EXPECT_EQ(result_of({{DType::kBF16, true}}, {DTypeKind::kFloat}), DType::kBF16);
  EXPECT_EQ(result_of({{DType::kI64, true}}, {DTypeKind::kFloat}), DType::kF32);
  EXPECT_EQ(result_of({{DType::kI32, false}}, {DTypeKind::kSigned}), DType::kI32);
  EXPECT_EQ(result_of({{DType::kBool, true}}, {DTypeKind::kSigned}), DType::kI64);
  EXPECT_EQ(result_of({{DType::kBool, true}}, {DTypeKind::kBool}), DType::kBool);
  EXPECT_EQ(result_of({{DType::kF32, true}, {DType::kC64, false}}), DType::kC64);
  EXPECT_EQ(result_of({{DType::kF64, true}}, {DTypeKind::kComplex}), DType::kC128);
  EXPECT_EQ(result_of({{DType::kI64, true}}, {DTypeKind::kComplex}), DType::kC64);
  EXPECT_EQ(result_of({{DType::kU8, true}, {DType::kI8, true}}), DType::kI16);
}

/// Ops of the graph after reading, in order.
std::vector<std::string> ops_of(const GraphText& text) {
  Result<Program> program = read_test_program(text.text());
  EXPECT_TRUE(program.has_value()) << (program ? "" : to_text(program.error()));
  std::vector<std::string> ops;
  if (!program) return ops;
  const Graph& graph = program->components[0].entry();
  for (NodeId node : graph.nodes()) ops.push_back(program->schemas[graph[node].op].name);
  return ops;
}

struct Input {
  int dtype;
  std::vector<int64_t> shape;
};

GraphText binary(std::string_view target, const Input& a, const Input& b, int result_dtype) {
  GraphText text;
  text.add_input("a", a.dtype, a.shape).add_input("b", b.dtype, b.shape);
  text.add_node(target, {T::argument("self", T::value("a")), T::argument("other", T::value("b"))}, "y", result_dtype,
                {2, 3});
  return text;
}

const std::vector<std::string> kCastThenAdd = {"aten._to_copy.default", "aten.add.Tensor"};
const std::vector<std::string> kAdd = {"aten.add.Tensor"};

TEST(Promotion, casts_the_operand_of_lower_dtype) {
  EXPECT_EQ(ops_of(binary("torch.ops.aten.add.Tensor", {7, {2, 3}}, {5, {2, 3}}, 7)), kCastThenAdd);
  EXPECT_EQ(ops_of(binary("torch.ops.aten.add.Tensor", {7, {2, 3}}, {7, {2, 3}}, 7)), kAdd);
  EXPECT_EQ(ops_of(binary("torch.ops.aten.add.Tensor", {7, {2, 3}}, {8, {}}, 7)), kCastThenAdd);
}

TEST(Promotion, leaves_operands_without_dims_beside_halves) {
  EXPECT_EQ(ops_of(binary("torch.ops.aten.add.Tensor", {13, {2, 3}}, {7, {}}, 13)), kAdd);
  EXPECT_EQ(ops_of(binary("torch.ops.aten.add.Tensor", {13, {2, 3}}, {5, {2, 3}}, 13)), kCastThenAdd);
}

TEST(Promotion, leaves_nodes_whose_result_contradicts_the_rules) {
  EXPECT_EQ(ops_of(binary("torch.ops.aten.add.Tensor", {7, {2, 3}}, {5, {2, 3}}, 8)), kAdd);
}

TEST(Promotion, leaves_in_place_ops_that_round_into_self) {
  EXPECT_EQ(ops_of(binary("torch.ops.aten.add_.Tensor", {13, {2, 3}}, {7, {2, 3}}, 13)),
            std::vector<std::string>{"aten.add_.Tensor"});
  EXPECT_EQ(ops_of(binary("torch.ops.aten.add_.Tensor", {7, {2, 3}}, {5, {2, 3}}, 7)),
            (std::vector<std::string>{"aten._to_copy.default", "aten.add_.Tensor"}));
}

TEST(Promotion, comparisons_cast_but_return_bool) {
  EXPECT_EQ(ops_of(binary("torch.ops.aten.eq.Tensor", {7, {2, 3}}, {5, {2, 3}}, 12)),
            (std::vector<std::string>{"aten._to_copy.default", "aten.eq.Tensor"}));
}

TEST(Promotion, functions_take_integers_to_floats) {
  GraphText text;
  text.add_input("i", 5, {2, 3});
  text.add_node("torch.ops.aten.sqrt.default", {T::argument("self", T::value("i"))}, "y", 7, {2, 3});
  EXPECT_EQ(ops_of(text), (std::vector<std::string>{"aten._to_copy.default", "aten.sqrt.default"}));
}

TEST(Promotion, lists_are_cast_item_by_item) {
  GraphText text;
  text.add_input("a", 7, {2}).add_input("b", 5, {2});
  text.add_node("torch.ops.aten.cat.default",
                {T::argument("tensors", R"({"as_tensors": [{"name": "a"}, {"name": "b"}, {"name": "b"}]})")}, "y", 7,
                {6});
  EXPECT_EQ(ops_of(text), (std::vector<std::string>{"aten._to_copy.default", "aten.cat.default"}));
}

TEST(Promotion, names_of_casts_avoid_names_that_come_later) {
  GraphText text;
  text.add_input("a", 7, {2}).add_input("b", 5, {2});
  text.add_node("torch.ops.aten.add.Tensor", {T::argument("self", T::value("a")), T::argument("other", T::value("b"))},
                "y", 7, {2});
  text.add_node("torch.ops.aten.relu.default", {T::argument("self", T::value("y"))}, "b_f32", 7, {2});
  Result<Program> program = read_test_program(text.text());
  ASSERT_TRUE(program.has_value()) << to_text(program.error());
  const Graph& graph = program->components[0].entry();
  ASSERT_TRUE(graph.find("b_f32").has_value());
  EXPECT_EQ(program->schemas[graph[graph[*graph.find("b_f32")].producer].op].name, "aten.relu.default");
  EXPECT_TRUE(graph.find("b_f32_1").has_value());
}

}  // namespace
}  // namespace argosy
