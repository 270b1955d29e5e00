#include <gtest/gtest.h>

#include "inspect/inspect.h"
#include "ir/text.h"

namespace argosy {
namespace {

ProgramReport report_of(std::string_view text) {
  auto program = parse(text);
  EXPECT_TRUE(program) << to_text(program.error());
  return program ? inspect_program(*program) : ProgramReport{};
}

constexpr std::string_view kProgram =
    "schema aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)\n"
    "schema aten::neg(Tensor self) -> Tensor\n"
    "schema aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)\n"
    "weight @head: f32[2, 4] parameter\n"
    "weight @embed: f32[2, 4] parameter = @head\n"
    "weight @steps: i64[1] buffer\n"
    "symbol s0 positive in [1, 16] as \"batch\"\n"
    "symbol s1 positive\n"
    "guard \"L['x'].size()[0] <= 16\" (s0 <= 16)\n"
    "guard \"strange\"\n"
    "specialized \"x\" dim 1 = 4 because \"x.size(1) == 4\"\n"
    "input \"x\" = %x\n"
    "input \"mask\" = none\n"
    "input \"cache\" = %cache\n"
    "output user \"logits\"\n"
    "output buffer_mutation target \"steps\"\n"
    "output user\n"
    "graph (%x: f32[s0, 4] storage 0, %cache: f32[s0 + s1] storage 1) weights (\n"
    "    %head = @head, %embed = @embed, %steps storage 2 = @steps) {\n"
    "  %alias: f32[s0 + s1, 1] storage 1 = aten.view.default(self=%cache, size=[-1, 1])\n"
    "  %w: f32[s0 + s1, 1] storage 1 = aten.add_.Tensor(self=%alias, other=%alias)\n"
    "  %n1: f32[s0, 4] = aten.neg.default(self=%x)\n"
    "  %n2: f32[s0, 4] = aten.neg.default(self=%n1)\n"
    "  return %n2, %steps, 7\n"
    "}\n";

TEST(InspectProgram, interface_has_named_dims_and_constants) {
  ProgramReport report = report_of(kProgram);
  ASSERT_EQ(report.components.size(), 1u);
  const ComponentReport& component = report.components[0];
  ASSERT_EQ(component.inputs.size(), 3u);
  EXPECT_EQ(component.inputs[0].type->dims, (std::vector<std::string>{"batch", "4"}));
  EXPECT_EQ(component.inputs[1].name, "mask");
  EXPECT_FALSE(component.inputs[1].type);
  EXPECT_EQ(component.inputs[1].constant, "none");
  ASSERT_EQ(component.inputs[2].type->dims.size(), 1u);
  EXPECT_NE(component.inputs[2].type->dims[0].find("batch"), std::string::npos);
  ASSERT_EQ(component.outputs.size(), 2u);
  EXPECT_EQ(component.outputs[0].name, "logits");
  EXPECT_EQ(component.outputs[1].constant, "7");
  ASSERT_EQ(component.dims.size(), 2u);
  EXPECT_EQ(component.dims[0].name, "batch");
  EXPECT_EQ(component.dims[0].symbol, "s0");
  EXPECT_EQ(component.dims[0].range, (SymRange{1, 16}));
  EXPECT_EQ(component.dims[1].name, "s1");
}

TEST(InspectProgram, ops_are_counted_most_frequent_first) {
  ProgramReport report = report_of(kProgram);
  ASSERT_EQ(report.ops.size(), 3u);
  EXPECT_EQ(report.ops[0].op, "aten.neg.default");
  EXPECT_EQ(report.ops[0].count, 2u);
  EXPECT_EQ(report.ops[1].op, "aten.add_.Tensor");
  EXPECT_EQ(report.components[0].nodes, 4u);
}

TEST(InspectProgram, mutations_are_found_in_the_signature_and_through_aliases) {
  const auto mutations = report_of(kProgram).components[0].mutations;
  ASSERT_EQ(mutations.size(), 2u);
  EXPECT_EQ(mutations[0].kind, "buffer");
  EXPECT_EQ(mutations[0].target, "steps");
  EXPECT_EQ(mutations[0].output, 1u);
  EXPECT_EQ(mutations[0].writes, 0u);
  EXPECT_EQ(mutations[1].kind, "input");
  EXPECT_EQ(mutations[1].target, "cache");
  EXPECT_FALSE(mutations[1].output);
  EXPECT_EQ(mutations[1].writes, 1u);
}

TEST(InspectProgram, tied_weights_count_once_and_shapes_without_bytes_are_warned_of) {
  ProgramReport report = report_of(kProgram);
  ASSERT_EQ(report.tensors.size(), 3u);
  EXPECT_EQ(report.tensors[0].name, "embed");
  EXPECT_EQ(report.tensors[0].tied_to, "head");
  EXPECT_FALSE(report.tensors[0].is_stored);
  ASSERT_EQ(report.totals.size(), 2u);
  EXPECT_EQ(report.totals[1].dtype, DType::kF32);
  EXPECT_EQ(report.totals[1].tensors, 1u);
  EXPECT_EQ(report.totals[1].bytes, 32u);
  EXPECT_EQ(report.warnings,
            (std::vector<std::string>{"component model: 1 of 2 guards are not understood, and only kept as text",
                                      "2 weights are shapes only: their values are not in this file"}));
}

TEST(InspectProgram, guards_and_specialised_dims_are_listed) {
  const ComponentReport component = report_of(kProgram).components[0];
  EXPECT_EQ(component.guards, (std::vector<std::string>{"L['x'].size()[0] <= 16", "strange"}));
  ASSERT_EQ(component.specialized.size(), 1u);
  EXPECT_EQ(component.specialized[0].value, 4);
}

}  // namespace
}  // namespace argosy
