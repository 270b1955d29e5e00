#include "passes/rewrite_rules.h"

#include <gtest/gtest.h>

#include <array>

#include "ir/text.h"
#include "passes/pipeline.h"

namespace argosy {
namespace {

constexpr std::string_view kProgram = R"(
schema aten::silu(Tensor self) -> Tensor
schema aten::sigmoid(Tensor self) -> Tensor
schema aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
graph (%x: f32[2, 3]) {
  %y: f32[2, 3] = aten.silu.default(self=%x)
  %z: f32[2, 3] = aten.silu.default(self=%y)
  return %z
}
)";

constexpr std::string_view kDecomposed = R"(
schema aten::sigmoid(Tensor self) -> Tensor
schema aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
graph (%x: f32[2, 3]) {
  %a: f32[2, 3] = aten.sigmoid.default(self=%x)
  %b: f32[2, 3] = aten.mul.Tensor(self=%x, other=%a)
  %c: f32[2, 3] = aten.sigmoid.default(self=%b)
  %d: f32[2, 3] = aten.mul.Tensor(self=%b, other=%c)
  return %d
}
)";

Program parsed(std::string_view text) {
  Result<Program> program = parse(text);
  EXPECT_TRUE(program) << to_text(program.error());
  return std::move(*program);
}

// silu(x) = x * sigmoid(x)
Result<bool> decompose_silu(RuleContext& context, const RewriteRule&) {
  const Graph& graph = context.rewriter.graph();
  const Argument self = graph[context.node].arguments[0];
  const ValueType type = graph[graph[context.node].outputs[0]].type;
  NodeId gate =
      context.rewriter.create(*context.program.schemas.find("aten.sigmoid.default"), {self}, {NewValue{"", type}});
  NodeId product = context.rewriter.create(*context.program.schemas.find("aten.mul.Tensor"),
                                           {self, Argument(graph[gate].outputs[0])}, {NewValue{"", type}});
  context.rewriter.replace(context.node, std::vector<ValueId>(graph[product].outputs));
  return true;
}

constexpr RewriteRule kActivations[] = {{.op = "aten.silu.default", .name = "decompose-silu", .apply = decompose_silu}};

Result<bool> run(Program& program, std::shared_ptr<const RuleTable> rules) {
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Pipeline pipeline;
  pipeline.add(apply_rules("decompose", std::move(rules)));
  PipelineHooks hooks;
  hooks.verify_each = true;
  return pipeline.run(program, context, hooks);
}

// Rules choose the names of values freely, so these are made equal before comparing.
void expect_same_shape(Program program, std::string_view expected) {
  Program other = parsed(expected);
  for (Program* p : {&program, &other}) {
    Graph& graph = p->components[0].graphs[0];
    Rewriter rewriter(graph);
    int number = 0;
    for (NodeId node : graph.nodes()) {
      for (ValueId output : graph[node].outputs) rewriter.rename(output, "n" + std::to_string(number++));
    }
  }
  EXPECT_EQ(difference(program, other), std::nullopt);
}

TEST(RewriteRulesTest, compiled_in_rules_apply_to_every_node) {
  std::array<std::span<const RewriteRule>, 1> families = {kActivations};
  Program program = parsed(kProgram);
  EXPECT_TRUE(run(program, std::make_shared<RuleTable>(families)).value());
  expect_same_shape(program, kDecomposed);
  EXPECT_FALSE(run(program, std::make_shared<RuleTable>(families)).value());
}

TEST(RewriteRulesTest, rules_can_be_added_at_run_time) {
  auto rules = std::make_shared<RuleTable>(std::span<const std::span<const RewriteRule>>{});
  int calls = 0;
  ASSERT_TRUE(rules->add(std::string("aten.silu.default"), "mine", [&calls](RuleContext& context) {
    ++calls;
    return decompose_silu(context, kActivations[0]);
  }));
  Program program = parsed(kProgram);
  EXPECT_TRUE(run(program, rules).value());
  EXPECT_EQ(calls, 2);
  expect_same_shape(program, kDecomposed);
}

TEST(RewriteRulesTest, rejects_rewriting_that_does_not_end) {
  auto rules = std::make_shared<RuleTable>(std::span<const std::span<const RewriteRule>>{});
  ASSERT_TRUE(rules->add("aten.silu.default", "spin", [](RuleContext&) -> Result<bool> { return true; }));
  Program program = parsed(kProgram);
  EXPECT_NE(run(program, rules).error().message.find("rule spin still applies"), std::string::npos);
}

TEST(RewriteRulesTest, a_failing_rule_names_itself_and_the_node) {
  auto rules = std::make_shared<RuleTable>(std::span<const std::span<const RewriteRule>>{});
  ASSERT_TRUE(rules->add("aten.silu.default", "picky", [](RuleContext&) -> Result<bool> {
    return fail(ErrorCode::kUnsupportedFeature, "not this one");
  }));
  Program program = parsed(kProgram);
  Error error = run(program, rules).error();
  ASSERT_EQ(error.frames.size(), 3u);
  EXPECT_EQ(error.frames[0].what, "rule picky");
  EXPECT_EQ(error.frames[1].what, "node %y = aten.silu.default(…)");
  EXPECT_EQ(error.frames[2].what, "pass decompose");
}

}  // namespace
}  // namespace argosy
