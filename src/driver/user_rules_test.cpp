#include "driver/user_rules.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "passes/eliminate_dead_code.h"
#include "passes/run_passes.h"

namespace argosy {
namespace {

constexpr std::string_view kGate = R"(
schema mylib::gate(Tensor x, float scale, int[] sizes, str mode, Tensor[] parts, Tensor? bias=None) -> Tensor
symbol s0 positive
graph (%x: f32[s0, 4], %i: i64[s0, 4]) {
  %y: f32[s0, 4] = mylib.gate.default(x=%x, scale=0.5, sizes=[1, 2], mode="near", parts=[%x, %i])
  return %y
}
)";

/// The ops of the graph after the rule, or the error's message.
std::string rewritten(std::function<void(OpGraph&)> write) {
  Program program = parse(kGate).value();
  OpRule rule{"mylib::gate", std::move(write)};
  auto rules = user_rules({&rule, 1});
  EXPECT_TRUE(rules) << to_text(rules.error());
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Pipeline pipeline;
  pipeline.add(apply_rules("rules", *rules));
  pipeline.add(eliminate_dead_code());
  auto done = verify_and_run(pipeline, program, context, {});
  if (!done) return done.error().message;
  std::string ops;
  const Graph& graph = program.components[0].entry();
  for (NodeId node : graph.nodes()) ops += program.schemas[graph[node].op].name + " ";
  return ops;
}

TEST(UserRules, write_what_an_op_consists_of) {
  std::string ops = rewritten([](OpGraph& graph) {
    OpTensor x = graph.tensor("x");
    EXPECT_EQ(graph.rank(x), 2u);
    EXPECT_FALSE(graph.has("bias"));
    EXPECT_FALSE(graph.has("other"));
    EXPECT_EQ(graph.text("mode"), "near");
    EXPECT_EQ(graph.numbers("sizes"), (std::vector<double>{1, 2}));
    EXPECT_EQ(graph.tensors("parts").size(), 2u);
    OpTensor y = graph.mul(graph.mul(graph.sigmoid(x), x), graph.number("scale"));
    graph.replace({graph.sub(y, graph.amax(graph.transpose(graph.transpose(y, 0, 1), -1, 0), 1))});
  });
  EXPECT_EQ(ops,
            "aten.sigmoid.default aten.mul.Tensor aten.mul.Scalar aten.permute.default aten.permute.default "
            "aten.amax.default aten.sub.Tensor ");
}

TEST(UserRules, rejects_what_no_graph_can_have) {
  auto expect = [](std::string_view text, std::function<void(OpGraph&)> write) {
    std::string found = rewritten(std::move(write));
    EXPECT_NE(found.find(text), std::string::npos) << found;
  };
  expect("the rule does not replace its node", [](OpGraph&) {});
  expect("has no argument \"other\"", [](OpGraph& g) { g.tensor("other"); });
  expect("argument scale of mylib.gate.default is not a tensor", [](OpGraph& g) { g.tensor("scale"); });
  expect("argument x of mylib.gate.default is not a number", [](OpGraph& g) { g.number("x"); });
  expect("argument x of mylib.gate.default is not a list of numbers", [](OpGraph& g) { g.numbers("x"); });
  expect("argument x of mylib.gate.default is not a list of tensors", [](OpGraph& g) { g.tensors("x"); });
  expect("argument bias of mylib.gate.default is not a tensor", [](OpGraph& g) { g.tensor("bias"); });
  expect("argument x of mylib.gate.default is not a text", [](OpGraph& g) { g.text("x"); });
  expect("a tensor that the rule was not given", [](OpGraph& g) { g.replace({OpTensor{77}}); });
  expect("no function \"gelu\" of 1 tensors", [](OpGraph& g) { g.call("gelu", {g.tensor("x")}); });
  expect("softmax has no dim 2", [](OpGraph& g) { g.softmax(g.tensor("x"), 2); });
  expect("sum has no dim -3", [](OpGraph& g) { g.sum(g.tensor("x"), -3); });
  expect("a tensor of integers", [](OpGraph& g) { g.mul(g.tensors("parts")[1], 0.5); });
  expect("the node has 1 results, and the rule gives 0", [](OpGraph& g) { g.replace({}); });
  expect("the rule replaces its node twice", [](OpGraph& g) {
    g.replace({g.tensor("x")});
    g.replace({g.tensor("x")});
  });
}

TEST(UserRules, rejects_rules_that_are_none) {
  auto message = [](std::vector<OpRule> rules) {
    auto made = user_rules(rules);
    EXPECT_FALSE(made);
    return made ? "" : made.error().message;
  };
  auto write = [](OpGraph&) {};
  EXPECT_EQ(message({{"mylib.gate", write}}), "\"mylib.gate\" is no op with a rule");
  EXPECT_EQ(message({{"mylib::", write}}), "\"mylib::\" is no op with a rule");
  EXPECT_EQ(message({{"mylib::gate", nullptr}}), "\"mylib::gate\" is no op with a rule");
  EXPECT_EQ(message({{"aten::relu", write}}), "\"aten::relu\" is PyTorch's, and has its rules");
  EXPECT_EQ(message({{"mylib::gate", write}, {"mylib::gate.default", write}}), "\"mylib::gate.default\" has two rules");
  EXPECT_EQ(user_rules({}).value(), nullptr);
}

}  // namespace
}  // namespace argosy
