#include "backends/executorch/xnnpack/delegate.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pipeline.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kSchemas =
    "schema aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
    "schema aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)\n"
    "schema aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor\n"
    "schema aten::neg(Tensor self) -> Tensor\n"
    "schema aten::cos(Tensor self) -> Tensor\n"
    "schema aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)\n";

/// The ops of the entry graph, in order; each part with those inside it.
std::string delegated(std::string_view weights, std::string_view graph) {
  Result<Program> program = parse(format("{}{}{}", kSchemas, weights, graph));
  EXPECT_TRUE(program) << to_text(program.error());
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Result<bool> changed = delegate_to_xnnpack().run(*program, context);
  EXPECT_TRUE(changed) << to_text(changed.error());
  EXPECT_TRUE(verify_first(*program));
  const Component& component = program->components[0];
  auto ops = [&](const Graph& of, auto&& self) -> std::string {
    std::string text;
    for (NodeId id : of.nodes()) {
      const Node& node = of[id];
      std::string op = program->schemas[node.op].name;
      op = op.substr(op.find('.') + 1);
      text += (text.empty() ? "" : " ") + op.substr(0, op.find('.'));
      for (const Argument& argument : node.arguments) {
        const auto* body = argument.get_if<GraphId>();
        if (body != nullptr) text += "(" + self(component.graphs[body->index], self) + ")";
      }
    }
    return text;
  };
  return ops(component.entry(), ops);
}

constexpr std::string_view kWeight = "weight @w: f32[4, 4] parameter\n";

TEST(DelegateToXnnpack, a_part_is_never_left_and_entered_again) {
  // The sum needs what a kernel computes from the first product: it cannot be in the same part.
  EXPECT_EQ(delegated(kWeight,
                      "graph (%x: f32[2, 4]) weights (%w = @w) {\n"
                      "  %a: f32[2, 4] = aten.linear.default(input=%x, weight=%w)\n"
                      "  %b: f32[2, 4] = aten.cos.default(self=%a)\n"
                      "  %c: f32[2, 4] = aten.add.Tensor(self=%a, other=%b)\n"
                      "  %d: f32[2, 4] = aten.linear.default(input=%c, weight=%w)\n"
                      "  return %d\n}\n"),
            "delegate(linear) cos delegate(add linear)");
}

TEST(DelegateToXnnpack, branches_of_one_step_are_one_part) {
  EXPECT_EQ(delegated(kWeight,
                      "graph (%x: f32[2, 4], %y: f32[2, 4]) weights (%w = @w) {\n"
                      "  %a: f32[2, 4] = aten.linear.default(input=%x, weight=%w)\n"
                      "  %b: f32[2, 4] = aten.cos.default(self=%a)\n"
                      "  %c: f32[2, 4] = aten.linear.default(input=%y, weight=%w)\n"
                      "  return %b, %c\n}\n"),
            "delegate(linear linear) cos");
}

TEST(DelegateToXnnpack, light_nodes_stay_with_the_kernel_that_needs_them) {
  EXPECT_EQ(delegated(kWeight,
                      "graph (%x: f32[2, 4]) weights (%w = @w) {\n"
                      "  %a: f32[2, 4] = aten.neg.default(self=%x)\n"
                      "  %b: f32[2, 4] = aten.cos.default(self=%a)\n"
                      "  %c: f32[2, 4] = aten.linear.default(input=%b, weight=%w)\n"
                      "  return %c\n}\n"),
            "neg cos delegate(linear)");
  EXPECT_EQ(delegated("",
                      "graph (%x: f32[2, 4]) {\n  %y: f32[4, 2] = aten.permute.default(self=%x, dims=[1, 0])\n"
                      "  return %y\n}\n"),
            "permute");
}

TEST(DelegateToXnnpack, what_is_written_is_an_operand_read_in_its_order) {
  // Read before and after it is written.
  EXPECT_EQ(delegated("weight @w: f32[4, 4] parameter\nweight @s: f32[2, 4] buffer\n",
                      "graph (%x: f32[2, 4]) weights (%w = @w, %s storage 0 = @s) {\n"
                      "  %a: f32[2, 4] = aten.linear.default(input=%s, weight=%w)\n"
                      "  %t: f32[2, 4] storage 0 = aten.add_.Tensor(self=%s, other=%x)\n"
                      "  %b: f32[2, 4] = aten.linear.default(input=%t, weight=%w)\n"
                      "  return %a, %b\n}\n"),
            "delegate(linear) add_ delegate(linear)");
}

TEST(DelegateToXnnpack, sizes_without_a_bound_and_other_types_are_not_delegated) {
  EXPECT_EQ(delegated("",
                      "graph (%x: f64[2, 4], %y: f64[2, 4]) {\n"
                      "  %z: f64[2, 4] = aten.add.Tensor(self=%x, other=%y)\n  return %z\n}\n"),
            "add");
  EXPECT_EQ(delegated(kWeight,
                      "component model {\n  symbol s0 positive\n  graph (%x: f32[s0, 4]) weights (%w = @w) {\n"
                      "  %y: f32[s0, 4] = aten.linear.default(input=%x, weight=%w)\n  return %y\n}\n}\n"),
            "linear");
}

}  // namespace
}  // namespace argosy::executorch
