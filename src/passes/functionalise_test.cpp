#include "passes/functionalise.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pipeline.h"

namespace argosy {
namespace {

constexpr std::string_view kSchemas =
    "schema aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)\n"
    "schema aten::neg(Tensor self) -> Tensor\n"
    "schema aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)\n";

Program parsed(std::string_view text) {
  Result<Program> program = parse(format("{}{}", kSchemas, text));
  EXPECT_TRUE(program) << to_text(program.error());
  return std::move(*program);
}

Diagnostics run(Program& program) {
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Result<bool> changed = functionalise().run(program, context);
  EXPECT_TRUE(changed) << to_text(changed.error());
  EXPECT_TRUE(verify_first(program));
  return diagnostics;
}

TEST(Functionalise, tells_of_parameters_that_change) {
  Program program = parsed(
      "weight @scale: f32[2] parameter\n"
      "graph () weights (%scale = @scale) {\n"
      "  %a: f32[2] = aten.add_.Scalar(self=%scale, other=1)\n"
      "  return %a\n"
      "}\n");
  Diagnostics diagnostics = run(program);
  ASSERT_EQ(diagnostics.notes.size(), 1U);
  EXPECT_EQ(
      diagnostics.notes[0],
      "component model: the model changes its parameter scale while it runs; each call starts from the stored one");
  EXPECT_EQ(program.components[0].outputs.size(), 1U);
}

TEST(Functionalise, leaves_programs_without_writes_alone) {
  Program program = parsed("graph (%x: f32[2]) {\n  %y: f32[2] = aten.neg.default(self=%x)\n  return %y\n}\n");
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  EXPECT_FALSE(functionalise().run(program, context).value());
}

TEST(Functionalise, tied_weights_are_one_tensor) {
  Program program = parsed(
      "weight @a: f32[2] buffer\nweight @b: f32[2] buffer = @a\n"
      "graph () weights (%a storage 0 = @a, %b storage 0 = @b) {\n"
      "  %w: f32[2] storage 0 = aten.add_.Scalar(self=%a, other=1)\n"
      "  %y: f32[2] storage 1 = aten.neg.default(self=%b)\n"
      "  return %y\n"
      "}\n");
  run(program);
  const Graph& graph = program.components[0].entry();
  ValueId y = *graph.find("y");
  EXPECT_EQ(graph[graph[y].producer].arguments[0], Argument(*graph.find("add")));
}

TEST(Functionalise, refuses_inputs_that_overlap_somehow) {
  Program program = parsed(
      "graph (%a: f32[4] storage 0, %b: f32[2] storage 0) {\n"
      "  %w: f32[4] storage 0 = aten.add_.Scalar(self=%a, other=1)\n"
      "  %y: f32[2] storage 1 = aten.neg.default(self=%b)\n"
      "  return %y\n"
      "}\n");
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Result<bool> changed = functionalise().run(program, context);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().message, "whether %b shares memory with another value, which is written, is not known");
}

// One value with as many users as there are nodes, and a new view for every write.
TEST(Functionalise, takes_time_in_proportion_to_the_nodes) {
  constexpr int kWrites = 20'000;
  std::string text = "graph (%x: f32[4, 3] storage 0) {\n  %a: f32[4, 3] storage 1 = aten.neg.default(self=%x)\n";
  for (int i = 0; i < kWrites; ++i) {
    text += format("  %v{}: f32[3] storage 1 = aten.select.int(self=%a, dim=0, index={})\n", i, i % 4);
    text += format("  %w{}: f32[3] storage 1 = aten.add_.Scalar(self=%v{}, other=1)\n", i, i);
  }
  Program program = parsed(text + "  return %a\n}\n");
  run(program);
  EXPECT_EQ(program.components[0].entry().node_count(), 1U + 3 * kWrites);
}

}  // namespace
}  // namespace argosy
