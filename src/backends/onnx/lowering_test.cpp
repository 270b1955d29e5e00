#include "backends/onnx/lowering.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "ir/text.h"

namespace argosy::onnx {
namespace {

struct Lowered {
  Result<Model> model;
  Diagnostics diagnostics;
};

Lowered lower(std::string_view text, LoweringOptions options = {}) {
  Result<Program> program = parse(text);
  EXPECT_TRUE(program) << to_text(program.error());
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Result<bool> passed = onnx_pipeline(options).run(*program, context);
  EXPECT_TRUE(passed) << to_text(passed.error());
  Result<Model> model = translate(*program, program->components.front(), options, diagnostics);
  if (model && options.optimize != Optimize::kOff) {
    EXPECT_TRUE(optimize(*model));
  }
  return {std::move(model), std::move(diagnostics)};
}

/// "Shape Mul Reshape": the nodes of the model's own graph in order.
std::string ops_of(const Model& model) {
  std::vector<std::string> ops;
  for (const Node& node : model.graphs[0].nodes) ops.push_back(node.op);
  return join(ops, " ");
}

constexpr std::string_view kViews = R"(
schema aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
schema aten::sym_size.int(Tensor self, int dim) -> SymInt
symbol s0 positive
symbol s1 positive
graph (%x: f32[s0, s1, 8]) {
  %s0: int(s0) = aten.sym_size.int(self=%x, dim=0)
  %s1: int(s1) = aten.sym_size.int(self=%x, dim=1)
  %y: f32[s0, s1, 2, 4] = aten.view.default(self=%x, size=[%s0, %s1, 2, 4])
  %n: int(s0*s1) = _operator.mul(a=%s0, b=%s1)
  %z: f32[s0*s1, 8] = aten.view.default(self=%x, size=[%n, 8])
  return %y, %z
}
)";

TEST(OnnxLoweringTest, shapes_of_one_unknown_size_are_constants) {
  Lowered lowered = lower(kViews);
  ASSERT_TRUE(lowered.model) << to_text(lowered.model.error());
  EXPECT_EQ(ops_of(*lowered.model), "Reshape Reshape");
}

constexpr std::string_view kOwnOp = R"(
attribute onnx_op.mylib.mix.default = "com.example.Mix 2"
schema mylib::mix(Tensor[] parts, Tensor? bias=None, float scale=1.0, int n=0, Tensor? last=None) -> Tensor
symbol s0 positive
graph (%x: f32[s0, 8]) {
  %y: f32[s0, 8] = mylib.mix.default(parts=[%x, %x], scale=0.5, n=N)
  return %y
}
)";

std::string with_number(std::string text, std::string_view number) {
  return text.replace(text.find("n=N"), 3, format("n={}", number));
}

TEST(OnnxLoweringTest, an_op_of_a_user_is_a_node_of_its_domain) {
  Lowered lowered = lower(with_number(std::string(kOwnOp), "3"));
  ASSERT_TRUE(lowered.model) << to_text(lowered.model.error());
  const Node& node = lowered.model->graphs[0].nodes.at(0);
  EXPECT_EQ(node.domain + "." + node.op, "com.example.Mix");
  EXPECT_EQ(node.inputs.size(), 2u);  // those that are None at the end are left out
  ASSERT_EQ(node.attributes.size(), 2u);
  EXPECT_EQ(std::get<float>(node.attributes[0].value), 0.5F);
  EXPECT_EQ(std::get<int64_t>(node.attributes[1].value), 3);
  EXPECT_EQ(lowered.model->domains.at("com.example"), 2);
}

TEST(OnnxLoweringTest, rejects_an_op_of_a_user_with_a_number_that_is_computed) {
  std::string text = with_number(std::string(kOwnOp), "%n");
  text.replace(text.find("  %y"), 0, "  %n: int(s0) = aten.sym_size.int(self=%x, dim=0)\n");
  text.insert(1, "schema aten::sym_size.int(Tensor self, int dim) -> SymInt\n");
  Lowered lowered = lower(text);
  ASSERT_FALSE(lowered.model);
  EXPECT_NE(lowered.model.error().message.find("argument n is computed by the model"), std::string::npos);
}

TEST(OnnxLoweringTest, an_input_that_callers_may_group_has_no_declared_shape) {
  Lowered lowered = lower(R"(
component model {
  attribute border.any_rank = "x"
  symbol n nonnegative
  output user "y"
  graph (%x: f32[n, 8]) { return %x }
}
)");
  ASSERT_TRUE(lowered.model) << to_text(lowered.model.error());
  const Model& model = *lowered.model;
  EXPECT_FALSE(model[model.graphs[0].inputs[0]].shape.has_value());
  EXPECT_EQ(ops_of(model), "Reshape");
}

TEST(OnnxLoweringTest, what_comes_after_another_value_reads_its_shape) {
  Lowered lowered = lower(R"(
schema argosy::after(Tensor self, Tensor other) -> Tensor
schema aten::neg(Tensor self) -> Tensor
symbol n positive
graph (%x: f32[n, 2, 8], %y: f32[n, 4]) {
  %other: f32[n, 4] = aten.neg.default(self=%y)
  %z: f32[n, 2, 8] = argosy.after.default(self=%x, other=%other)
  return %z, %other
}
)");
  ASSERT_TRUE(lowered.model) << to_text(lowered.model.error());
  EXPECT_EQ(ops_of(*lowered.model), "Neg Shape Concat Reshape");
  EXPECT_EQ(lowered.model->graphs[0].nodes[1].inputs, lowered.model->graphs[0].nodes[0].outputs);
}

TEST(OnnxLoweringTest, a_size_is_computed_once_and_only_where_it_varies) {
  Lowered lowered = lower(R"(
schema aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
schema aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
schema aten::sym_size.int(Tensor self, int dim) -> SymInt
symbol s0 positive
graph (%x: f32[s0, 8], %row: f32[1, 8]) {
  %s: int(s0) = aten.sym_size.int(self=%x, dim=0)
  %a: f32[s0, 8] = aten.expand.default(self=%row, size=[%s, 8])
  %b: f32[s0, 8] = aten.expand.default(self=%row, size=[%s, -1])
  %c: f32[s0, 8] = aten.add.Tensor(self=%a, other=%b)
  return %c
}
)");
  ASSERT_TRUE(lowered.model) << to_text(lowered.model.error());
  EXPECT_EQ(ops_of(*lowered.model), "Shape Concat Expand Add");
}

TEST(OnnxLoweringTest, every_missing_op_is_named_with_its_place) {
  Lowered lowered = lower(R"(
schema mine::twist(Tensor self) -> Tensor
schema mine::turn(Tensor self) -> Tensor
graph (%x: f32[2, 3]) {
  %y: f32[2, 3] = mine.twist.default(self=%x) loc("layers.0", "Layer", "model.py":7)
  %z: f32[2, 3] = mine.turn.default(self=%x) loc("layers.1", "Layer", "model.py":9)
  return %y, %z
}
)");
  ASSERT_FALSE(lowered.model);
  ASSERT_EQ(lowered.diagnostics.errors.size(), 2U);
  EXPECT_EQ(to_text(lowered.diagnostics.errors[1]),
            "error[unsupported-op]: op mine.turn.default has no translation to ONNX\n"
            "  in node %z = mine.turn.default(…)\n"
            "  from layers.1 (Layer), model.py:9\n"
            "  in component model\n"
            "  hint: it is no op of PyTorch's: see docs/errors/unsupported-op.md\n");
}

TEST(OnnxLoweringTest, rejects_an_opset_that_is_not_known) {
  LoweringOptions options;
  options.opset = 12;
  EXPECT_EQ(lower(kViews, options).model.error().code, ErrorCode::kInvalidInput);
}

TEST(OnnxLoweringTest, equal_nodes_are_one_unless_they_are_outputs) {
  constexpr std::string_view kTwice = R"(
schema aten::exp(Tensor self) -> Tensor
schema aten::neg(Tensor self) -> Tensor
graph (%x: f32[2]) {
  %a: f32[2] = aten.exp.default(self=%x)
  %b: f32[2] = aten.exp.default(self=%x)
  %c: f32[2] = aten.neg.default(self=%a)
  %d: f32[2] = aten.neg.default(self=%b)
  return %c, %d
}
)";
  EXPECT_EQ(ops_of(*lower(kTwice).model), "Exp Neg Neg");
  LoweringOptions options;
  options.optimize = Optimize::kOff;
  EXPECT_EQ(ops_of(*lower(kTwice, options).model), "Exp Exp Neg Neg");
}

TEST(OnnxLoweringTest, an_input_that_is_returned_keeps_both_names) {
  Lowered lowered = lower("graph (%x: f32[2]) {\n  return %x, %x\n}\n");
  ASSERT_TRUE(lowered.model) << to_text(lowered.model.error());
  EXPECT_EQ(ops_of(*lowered.model), "Identity Identity");
}

}  // namespace
}  // namespace argosy::onnx
