#include <gtest/gtest.h>

#include "ir/text.h"

namespace argosy {
namespace {

constexpr std::string_view kBase = R"(
attribute a = "1"
schema aten::add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
schema aten::relu(Tensor self) -> Tensor
weight @w: f32[2] parameter
weight @v: f32[2] parameter = @w
component c {
  attribute b = "2"
  symbol s0 positive in [1, 8] as "batch"
  guard "g" (s0 == 2)
  specialized "x" dim 0 = 2 because "r"
  input "x" = %x
  input "k" = 3
  output user "y"
  graph (%x: f32[s0, 2] storage 1) weights (%w storage 2 = @w) {
    %y: f32[s0, 2] storage 1 = aten.relu(%x) loc("m")
    %z: f32[s0, 2] storage 3 = aten.add(%y, %w)
    return %z
  }
}
)";

// The base text with one piece changed.
std::string changed(std::string_view from, std::string_view to) {
  std::string text(kBase);
  size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("nothing to change");
  return text.replace(at, from.size(), to);
}

std::string difference_from(std::string_view from, std::string_view to) {
  return difference(parse(kBase).value(), parse(changed(from, to)).value()).value_or("none");
}

TEST(DifferenceTest, a_program_equals_itself_and_its_text) {
  Program program = parse(kBase).value();
  EXPECT_EQ(difference(program, program), std::nullopt);
  EXPECT_EQ(difference(program, parse(print(program)).value()), std::nullopt);
}

TEST(DifferenceTest, ids_names_of_values_and_unused_schemas_do_not_count) {
  EXPECT_EQ(difference_from("schema aten::relu", "schema aten::gelu(Tensor self) -> Tensor\nschema aten::relu"),
            "none");
  EXPECT_EQ(difference_from(
                "%y: f32[s0, 2] storage 1 = aten.relu(%x) loc(\"m\")\n    %z: f32[s0, 2] storage 3 = aten.add(%y",
                "%k: f32[s0, 2] storage 1 = aten.relu(%x) loc(\"m\")\n    %z: f32[s0, 2] storage 7 = aten.add(%k"),
            "none");
}

TEST(DifferenceTest, names_what_differs) {
  auto expect = [](std::string_view from, std::string_view to, std::string_view message) {
    std::string found = difference_from(from, to);
    EXPECT_NE(found.find(message), std::string::npos) << found;
    // From the other side, too.
    EXPECT_NE(difference(parse(changed(from, to)).value(), parse(kBase).value()), std::nullopt) << to;
  };
  expect("attribute a = \"1\"", "attribute a = \"9\"", "attribute \"a\" is \"1\" in one and \"9\" in the other");
  expect("attribute a = \"1\"", "", "attribute \"a\" is missing in the other");
  expect("attribute b", "attribute e = \"\" attribute b", "attribute \"e\" is only in the other");
  expect("component c", "component d", "name of component 0");
  expect("weight @v: f32[2] parameter = @w", "weight @u: f32[2] parameter = @w", "weight \"v\" is missing");
  expect("weight @v: f32[2] parameter = @w", "weight @v: f32[2] parameter", "tied");
  expect("weight @v: f32[2] parameter", "weight @v: f32[2] buffer", "kind of weight \"v\"");
  expect("weight @v: f32[2]", "weight @v: f16[2]", "dtype of weight \"v\"");
  expect("weight @v: f32[2]", "weight @v: f32[3]", "shape of weight \"v\"");
  expect("weight @v: f32[2] parameter = @w", "", "number of weights");
  expect("in [1, 8]", "in [1, 9]", "maximum of symbol s0 is 8 in one and 9 in the other");
  expect("in [1, 8]", "in [2, 8]", "minimum of symbol s0");
  expect("s0 positive", "s0 nonnegative", "assumptions about symbol s0 differ");
  expect("as \"batch\"", "as \"b\"", "name of symbol \"s0\"");
  expect("guard \"g\" (s0 == 2)", "", "number of guards");
  expect("guard \"g\"", "guard \"h\"", "guard 0");
  expect("(s0 == 2)", "(s0 == 3)", "condition of guard \"g\"");
  expect("(s0 == 2)", "", "condition of guard \"g\"");
  expect("dim 0 = 2", "dim 0 = 3", "dims that the trace fixed differ");
  expect("input \"k\" = 3", "input \"k\" = 3.0", "input \"k\" stands for 3 in one and 3.0 in the other");
  expect("input \"k\" = 3", "input \"l\" = 3", "name of input 1");
  expect("input \"k\" = 3", "", "number of inputs");
  expect("output user \"y\"", "output loss \"y\"", "kind of output 0");
  expect("output user \"y\"", "output user \"z\"", "name of output 0");
  expect("output user \"y\"", "output user \"y\" target \"t\"", "target of output 0");
  expect("(%x: f32[s0, 2]", "(%x: f16[s0, 2]", "%x: type is f32[s0, 2] in one and f16[s0, 2] in the other");
  expect("(%x: f32[s0, 2]", "(%x: f32[s0, 3]", "%x: type");
  expect("(%x: f32[s0, 2]", "(%x: f32[s0, 2] strides [2, 1]", "%x: type");
  expect("(%x: f32[s0, 2] storage 1)", "(%x: f32[s0, 2] storage 1, %q: int)", "number of inputs");
  expect("storage 3 ", "storage 1 ", "shares memory with other values");
  expect("storage 3 ", "", "shares memory with other values");
  expect("= @w) {", "= @v) {", "weight is \"w\" in one and \"v\" in the other");
  expect("loc(\"m\")", "loc(\"n\")", "it comes from \"m\" in one and \"n\" in the other");
  expect("aten.add(%y, %w)", "aten.add(%y, %x)", "argument other is %w in one and %x in the other");
  expect("aten.add(%y, %w)", "aten.add(%y, %w, alpha=2)", "argument alpha is 1 in one and 2 in the other");
  expect("aten.add(%y, %w)", "aten.relu(%y)", "op is \"aten.add.default\"");
  expect("schema aten::relu(Tensor self)", "schema aten::relu(Tensor me)", "schema of the op");
  expect("return %z", "aten.relu(%z) return %z", "node aten.relu.default(…) is only in the other");
  expect("return %z", "return %y", "result 0 is %z in one and %y in the other");
  expect("return %z", "return %z, 1", "number of results");
  expect("return %z\n  }", "return %z\n  } graph () { return }", "number of graphs");
}

TEST(DifferenceTest, doubles_count_bit_by_bit) {
  auto program = [](std::string_view value) { return parse("graph () { return " + std::string(value) + " }").value(); };
  EXPECT_EQ(difference(program("nan"), program("nan")), std::nullopt);
  EXPECT_NE(difference(program("nan"), program("nan:0x7ff8000000000001")), std::nullopt);
  EXPECT_NE(difference(program("0.0"), program("-0.0")), std::nullopt);
}

TEST(DifferenceTest, tells_graphs_apart_by_number) {
  std::string_view text = "component c { graph () { return } graph () { return 1 } }";
  std::string_view other = "component c { graph () { return } graph () { return 2 } }";
  EXPECT_EQ(difference(parse(text).value(), parse(other).value()),
            "component c: graph 1: result 0 is 1 in one and 2 in the other");
}

}  // namespace
}  // namespace argosy
