#include "ir/text.h"

#include <gtest/gtest.h>

#include "ir/verify.h"

namespace argosy {
namespace {

Program parsed(std::string_view text) {
  Result<Program> program = parse(text);
  if (!program) throw std::runtime_error(to_text(program.error()));
  return *std::move(program);
}

std::string error_of(std::string_view text) {
  Result<Program> program = parse(text);
  return program ? "no error" : to_text(program.error());
}

void expect_rejected(std::string_view text, std::string_view message) {
  std::string error = error_of(text);
  EXPECT_NE(error.find(message), std::string::npos) << text << "\n gave: " << error;
}

// One line of a graph over %x: f32[2] and %n: int, with a few schemas.
std::string with_line(std::string_view line) {
  return "schema aten::f(Tensor self, int a=1, *, float b=0.5) -> Tensor\n"
         "schema aten::g(Tensor[] t, Tensor?[] o, int[] i, float[] d, bool[] b, str[] s, int[][] n, Scalar x) -> ()\n"
         "schema aten::v(Any a, ...) -> ()\n"
         "graph (%x: f32[2], %n: int) {\n  " +
         std::string(line) + "\n  return %x\n}\n";
}

// Every kind of line and of argument; as print() writes it.
constexpr std::string_view kGolden = R"ir(attribute "odd key" = "a\\b\"c\n\t\x01é\xff"
attribute torch_version = "2.13.0"
schema aten::_assert_scalar(Scalar self, str assert_msg) -> ()
schema aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
schema aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
schema aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
schema aten::sym_size.int(Tensor self, int dim) -> SymInt
schema "custom::all(bool a, int b, float c, Scalar d, str e=\"#\", Device g, Device h, SymInt[] k, Any p, Any q) -> ()"
schema custom::more(ScalarType f, Layout i, MemoryFormat j, bool[] l, float[] m, str[] n, int[][] o) -> ()
weight @lm_head.weight: f32[100, 768] parameter
weight @model.embed.weight: f32[100, 768] parameter = @lm_head.weight
weight @"odd name": i64[] buffer
weight @t: bf16[0, 3] constant
component decode {
  attribute in_spec = "[1]"
  symbol s0 positive in [1, 128] as "batch"
  symbol s1 in [-3, inf]
  symbol u0 nonnegative
  symbol zf0 any real
  dim_name "gone" = "past"
  guard "L['x'].size()[0] == 4"
  guard "eq" (s0 == s1)
  specialized "pixel_values" dim 2 = 32 because "the trace needs it"
  input "x" = %x
  input "use_cache" = false
  input "mode" = "fast"
  output user "logits"
  output buffer_mutation target "odd name"
  output user
  output user
  graph 0 (
      %x: f32[s0, 768] strides [768, 1] storage 1) weights (
      %w storage 2 = @lm_head.weight,
      %"odd \"value\"" = @"odd name") {
    %y: f32[s0, 100] storage 3 = aten.linear.default(input=%x, weight=%w) loc("model.head", "Linear", call 2, "llama.py":88)
    %n: int(s0) = aten.sym_size.int(self=%x, dim=0) loc("model")
    %m: int = _operator.add(a=%n, b=2)
    %c: bool(s0 > 2) = _operator.gt(a=%n, b=2)
    %f: float = torch.sym_float(a=%n)
    aten._assert_scalar.default(self=%c, assert_msg="msg")
    %a: f32[s0, 50] storage 3, %b: f32[s0, 50] storage 3 = aten.split.Tensor(self=%y, split_size=50, dim=1)
    %i: f32[s0] = aten.index.Tensor(self=%y, indices=[none, %"odd \"value\""])
    custom.all.default(a=true, b=-9223372036854775808, c=1e-05, d=complex(-0.0, nan), g=device:cpu, h=device:cuda:1, k=[1, %n, 3], p=list[none, values[%x, none], doubles[], bools[], strings[], list[], []], q=nan:0xfff8000000000001)
    custom.more.default(f=dtype:bf16, i=layout:strided, j=format:channels_last, l=[true, false], m=[0.5, -inf], n=["a", ""], o=[[1, 2], []])
    %r: f32[2*s0 + 1] = higher_order.cond(pred=%c, true_graph=graph:1, false_graph=graph:2, operands=values[%x])
    return %y, %"odd \"value\"", 3, none
  }
  graph 1 (%x: f32[s0, 768]) {
    return %x
  }
  graph 2 (%other: f32[s0, 768]) {
    return %other
  }
}
component "second one" {
  graph () {
    return
  }
}
)ir";

TEST(TextTest, prints_what_it_read) { EXPECT_EQ(print(parsed(kGolden)), kGolden); }

TEST(TextTest, reads_all_parts) {
  Program program = parsed(kGolden);
  EXPECT_EQ(program.attributes.at("odd key"), "a\\b\"c\n\t\x01é\xff");
  ASSERT_EQ(program.weights.size(), 4u);
  EXPECT_EQ(program.weights[1].tied_to, WeightId{0});
  EXPECT_EQ(program.weights[2].kind, WeightKind::kBuffer);
  EXPECT_EQ(program.weights[3].shape, (std::vector<int64_t>{0, 3}));
  const Component& decode = program.components.at(0);
  EXPECT_EQ(decode.dim_names, (std::map<std::string, std::string>{{"s0", "batch"}, {"gone", "past"}}));
  EXPECT_EQ(decode.symbols->range(decode.symbols->symbol("s0")), (SymRange{1, 128}));
  EXPECT_TRUE(decode.symbols->assumptions(decode.symbols->symbol("s0")).is_positive);
  EXPECT_EQ(decode.symbols->prove_equal(decode.symbols->symbol("s0"), decode.symbols->symbol("s1")), true);
  EXPECT_EQ(decode.inputs[1].constant, Argument(false));
  EXPECT_EQ(decode.inputs[0].value, decode.entry().inputs()[0]);
  EXPECT_EQ(decode.outputs[1].kind, OutputKind::kBufferMutation);
  EXPECT_EQ(decode.specialized.at(0).value, 32);

  const Graph& entry = decode.entry();
  EXPECT_EQ(entry.node_count(), 11u);
  EXPECT_EQ(entry[entry.find("odd \"value\"").value()].weight, WeightId{2});
  const Node& linear = entry[entry.first()];
  EXPECT_EQ(linear.arguments.at(2), Argument(None{})) << "a default that was left out";
  EXPECT_EQ(program.locations[linear.location],
            (ModelLocation{
                .file = "llama.py", .line = 88, .module_path = "model.head", .class_name = "Linear", .call_index = 2}));
  EXPECT_EQ(entry[entry.find("y").value()].storage, StorageId{3});
  EXPECT_EQ(entry[entry.find("y").value()].uses.size(), 3u);
}

TEST(TextTest, a_lone_graph_is_the_component_model) {
  Program program = parsed(R"(
    # what a person writes for a test
    schema aten::silu(Tensor self) -> Tensor   # comment
    graph(%x: f32[s0, 768]) {
      %y: f32[s0, 768] = aten.silu(%x)   loc("mlp.act", "modeling_foo.py":88)
      return %y
    })");
  const Component& model = program.components.at(0);
  EXPECT_EQ(model.name, "model");
  ASSERT_EQ(model.inputs.size(), 1u);
  EXPECT_EQ(model.inputs[0].name, "x");
  EXPECT_EQ(model.outputs, std::vector<OutputSpec>(1));
  EXPECT_EQ(print(program), R"(schema aten::silu(Tensor self) -> Tensor
symbol s0
graph (%x: f32[s0, 768]) {
  %y: f32[s0, 768] = aten.silu.default(self=%x) loc("mlp.act", "modeling_foo.py":88)
  return %y
}
)");
  EXPECT_EQ(verify(program).errors.size(), 0u);
}

TEST(TextTest, prints_one_graph) {
  Program program = parsed(kGolden);
  const Component& decode = program.components[0];
  EXPECT_EQ(print(program, decode, decode.graphs[2]), "graph 2 (%other: f32[s0, 768]) {\n  return %other\n}\n");
}

TEST(TextTest, leaves_out_builtin_and_unused_schemas) {
  Program program =
      parsed("schema aten::unused(Tensor a) -> ()\ngraph (%n: int) {\n %m: int = _operator.neg(a=%n)\n return\n}");
  EXPECT_EQ(print(program), "graph (%n: int) {\n  %m: int = _operator.neg(a=%n)\n  return\n}\n");
}

TEST(TextTest, extra_arguments_follow_named_ones) {
  Program program = parsed(with_line("aten.v.default(a=none, 1, %x, 2.5)"));
  const Graph& graph = program.components[0].entry();
  EXPECT_EQ(graph[graph.first()].arguments, (std::vector<Argument>{None{}, int64_t{1}, graph.inputs()[0], 2.5}));
  EXPECT_NE(print(program).find("aten.v.default(a=none, 1, %x, 2.5)"), std::string::npos);
}

TEST(TextTest, arguments_without_names_come_in_order) {
  Program program = parsed(with_line("%y: f32[2] = aten.f(%x, 7, b=1.5)"));
  EXPECT_NE(print(program).find("aten.f.default(self=%x, a=7, b=1.5)"), std::string::npos);
}

TEST(TextTest, symbols_with_odd_names_survive) {
  Program program = parsed("symbol \"a, #]`\"\nsymbol \"not\"\ngraph (%x: f32[`a, #]\\`` + 1, `not`]) {\n return\n}");
  std::string text = print(program);
  Program again = parsed(text);
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(difference(program, again), std::nullopt);
  EXPECT_EQ(again.components[0].symbols->symbols().size(), 2u);
}

TEST(TextTest, equalities_are_known_after_reading) {
  Program program = parsed(R"(
    symbol s0 in [1, 8] as "batch"
    symbol s1 in [1, 9] as "batch"
    symbol s2
    symbol s3
    symbol s4
    guard "both" (s2 == s3 and s2 <= 4)
    graph () { return })");
  SymContext& symbols = *program.components[0].symbols;
  EXPECT_EQ(symbols.prove_equal(symbols.symbol("s0"), symbols.symbol("s1")), true);
  EXPECT_EQ(symbols.prove_equal(symbols.symbol("s2"), symbols.symbol("s3")), true);
  EXPECT_EQ(symbols.prove_equal(symbols.symbol("s2"), symbols.symbol("s4")), std::nullopt);
  // The ranges are those of the text all the same.
  EXPECT_EQ(symbols.range(symbols.symbol("s1")), (SymRange{1, 9}));
}

TEST(TextTest, an_error_shows_the_place) {
  EXPECT_EQ(error_of("graph (%x: f32[2]) {\n  return %q\n}\n"),
            "error[invalid-input]: 2:10: value \"%q\" is not defined\n"
            "      return %q\n"
            "             ^\n"
            "  hint: values are defined before they are used, in the same graph\n");
}

TEST(TextTest, an_error_in_a_long_line_shows_a_part_of_it) {
  std::string error = error_of("attribute k = \"" + std::string(1000, 'x') + "é\" ;" + std::string(1000, 'y'));
  EXPECT_NE(error.find("1:1020: expected schema"), std::string::npos) << error;
  EXPECT_LT(error.size(), 500u);
  // The caret stands under the offending character, counted in characters and not in bytes.
  size_t shown = error.find("\n    …") + 5;
  size_t caret_line = error.find('\n', shown) + 5;
  size_t caret = error.find('^') - caret_line;
  EXPECT_EQ(caret, 1u + 50u - 1u) << error;
}

TEST(TextTest, an_unknown_op_is_an_error_of_its_own) {
  Result<Program> program = parse("graph () {\n  foo.bar.default()\n  return\n}");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::kUnsupportedOp);
  EXPECT_NE(program.error().message.find("2:3: op \"foo.bar.default\" has no schema"), std::string::npos);
  EXPECT_NE(program.error().hint.find("schema aten::relu"), std::string::npos);
}

// ---- One rule each. ----

TEST(TextTest, rejects_unknown_lines) {
  expect_rejected("foo", "1:1: expected schema, attribute, weight, component, symbol");
  expect_rejected("component c { foo }", "1:15: expected attribute, symbol");
  expect_rejected("component c { graph () { return } } foo", "expected schema, attribute, weight or component");
}

TEST(TextTest, rejects_characters_that_mean_nothing) { expect_rejected("é", "found \"é\""); }

TEST(TextTest, rejects_strings_without_end) {
  expect_rejected("attribute a = \"b", "a string without its end");
  expect_rejected("graph (%\"x: f32[2]) {\n return }", "a string without its end");
}

TEST(TextTest, rejects_unknown_escapes) {
  expect_rejected("attribute a = \"b\\q\"", "1:17: unknown escape");
  expect_rejected("attribute a = \"b\\xf\"", "unknown escape");
}

TEST(TextTest, rejects_doubled_attributes) {
  expect_rejected("attribute a = \"1\" attribute a = \"2\"", "1:29: attribute \"a\" occurs twice");
}

TEST(TextTest, rejects_bad_schemas) {
  expect_rejected("schema nonsense\n", "1:8: bad op schema");
  expect_rejected("schema aten::f() -> ()\nschema aten::f(int a) -> ()\n", "2:8: op aten.f.default has two schemas");
}

TEST(TextTest, rejects_bad_weights) {
  expect_rejected("weight w: f32[2] parameter", "1:8: expected a weight");
  expect_rejected("weight @\"\": f32[2] parameter", "a name must not be empty");
  expect_rejected("weight @w: f33[2] parameter", "unknown dtype");
  expect_rejected("weight @w: f32[-2] parameter", "-2 is not between 0 and");
  expect_rejected("weight @w: f32[4611686018427387904, 4] parameter", "1:12:");
  expect_rejected("weight @w: f32[2] thing", "unknown kind of weight");
  expect_rejected("weight @w: f32[2] buffer weight @w: f32[2] buffer", "weight \"@w\" occurs twice");
  expect_rejected("weight @w: f32[2] buffer = @v", "weight \"@v\" is not defined");
}

TEST(TextTest, rejects_doubled_components) {
  expect_rejected("component c { graph () { return } } component c { graph () { return } }", "\"c\" occurs twice");
}

TEST(TextTest, rejects_a_component_beside_a_lone_graph) {
  expect_rejected("graph () { return } component c { graph () { return } }",
                  "beside lines that belong to the only one");
}

TEST(TextTest, rejects_components_without_a_graph) {
  expect_rejected("component c { }", "expected a graph in component \"c\"");
  expect_rejected("symbol s0", "expected a graph in component \"model\"");
}

TEST(TextTest, rejects_bad_symbols) {
  expect_rejected("graph () { return } symbol s0", "symbols must be declared before guards and graphs");
  expect_rejected("symbol s0 symbol s0 graph () { return }", "symbol \"s0\" occurs twice");
  expect_rejected("symbol \"\" graph () { return }", "a name must not be empty");
  expect_rejected("symbol \"a\\n\" graph () { return }", "no symbol can have the name \"a\\x0a\"");
  expect_rejected("symbol s0 in [3, 2] graph () { return }", "no value of symbol \"s0\" is in this range");
  expect_rejected("symbol s0 positive in [-3, 0] graph () { return }", "no value of symbol");
  expect_rejected("symbol s0 in [x, 2] graph () { return }", "expected an integer");
  expect_rejected("symbol s0 as \"a\" dim_name \"s0\" = \"b\" graph () { return }", "has two names");
}

TEST(TextTest, rejects_bad_expressions) {
  expect_rejected("graph (%x: f32[s0 +]) { return }", "1:16: bad expression");
  expect_rejected("graph (%x: f32[(s0]) { return }", "bad expression");
  expect_rejected("graph (%x: f32[`a]) { return }", "bad expression");
  expect_rejected("graph (%x: f32[2\n]) { return }\n(", "expected schema");  // a line break before ']' is fine
  expect_rejected("guard \"a\" (s0 == ) graph () { return }", "bad expression");
}

TEST(TextTest, rejects_bad_types) {
  expect_rejected("graph (%x: f33[2]) { return }", "unknown dtype \"f33\"");
  expect_rejected("graph (%x: string) { return }", "unknown type \"string\"");
  expect_rejected("graph (%x: 3) { return }", "expected a type");
  expect_rejected("graph (%x) { return }", "expected ':' and the type of the input");
  expect_rejected(with_line("%y = aten.f(%x)"), "expected ':' and the type of the output");
}

TEST(TextTest, rejects_doubled_values) {
  expect_rejected("graph (%x: f32[2], %x: f32[2]) { return }", "1:20: value \"%x\" is defined twice");
  expect_rejected(with_line("%x: f32[2] = aten.f(%x)"), "5:3: value \"%x\" is defined twice");
  expect_rejected(with_line("%y: f32[2], %y: f32[2] = aten.f(%x)"), "5:15: value \"%y\" is defined twice");
  expect_rejected("weight @w: f32[2] buffer graph (%w: f32[2]) weights (%w = @w) { return }", "is defined twice");
}

TEST(TextTest, rejects_values_that_are_not_defined) {
  expect_rejected(with_line("%y: f32[2] = aten.f(%y)"), "5:23: value \"%y\" is not defined");
  expect_rejected("input \"x\" = %y graph (%x: f32[2]) { return }", "1:13: the entry graph has no value \"%y\"");
  expect_rejected("input \"x\" = [%y] graph (%x: f32[2]) { return }", "a value cannot be used here");
  expect_rejected("graph () weights (%w = @w) { return }", "weight \"@w\" is not defined");
}

TEST(TextTest, rejects_wrong_arguments) {
  expect_rejected(with_line("aten.f(%x, c=1)"), "5:14: op aten.f.default has no argument \"c\"");
  expect_rejected(with_line("aten.f(a=1)"), "5:3: op aten.f.default lacks its argument \"self\"");
  expect_rejected(with_line("aten.f(%x, self=%x)"), "argument \"self\" is given twice");
  expect_rejected(with_line("aten.f(%x, 1, 0.5, 2)"), "too many arguments: op aten.f.default takes 3");
  expect_rejected(with_line("aten.f(self=%x, 2)"), "too many arguments");
  expect_rejected(with_line("aten.f %x"), "expected '(' and the arguments");
  expect_rejected(with_line("aten.f(%x"), "expected ')'");
}

TEST(TextTest, rejects_bad_argument_values) {
  expect_rejected(with_line("aten.f(%x, word)"), "expected an argument, found \"word\"");
  expect_rejected(with_line("aten.f(%x, {)"), "expected an argument, found \"{\"");
  expect_rejected(with_line("aten.f(%x, 99999999999999999999)"), "is not an integer of 64 bits");
  expect_rejected(with_line("aten.f(%x, 1e999)"), "is not a floating-point number of 64 bits");
  expect_rejected(with_line("aten.f(%x, 1.2.3)"), "is not a floating-point number");
  expect_rejected(with_line("aten.f(%x, -nan)"), "is not a floating-point number");
  expect_rejected(with_line("aten.f(%x, -infinity)"), "is not a floating-point number");
  expect_rejected(with_line("aten.f(%x, nan:0x1)"), "16 digits of a NaN");
  expect_rejected(with_line("aten.f(%x, nan:0x7ff0000000000000)"), "16 digits of a NaN");
  expect_rejected(with_line("aten.f(%x, complex(1, 2.0))"),
                  "1 is an integer where a floating-point number is expected");
  expect_rejected(with_line("aten.f(%x, dtype:f33)"), "unknown dtype \"f33\"");
  expect_rejected(with_line("aten.f(%x, layout:odd)"), "unknown layout \"odd\"");
  expect_rejected(with_line("aten.f(%x, format:odd)"), "unknown format \"odd\"");
  expect_rejected(with_line("aten.f(%x, device:1)"), "expected a device");
}

TEST(TextTest, rejects_bad_lists) {
  expect_rejected(with_line("aten.v(ints[1.5])"), "is not an integer");
  expect_rejected(with_line("aten.v(bools[1])"), "expected true or false");
  expect_rejected(with_line("aten.v(doubles[1])"), "1 is an integer");
  expect_rejected(with_line("aten.v(strings[1])"), "expected a string");
  expect_rejected(with_line("aten.v(values[1])"), "expected a value");
  expect_rejected(with_line("aten.v([1 2])"), "expected ']'");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "list[";
  expect_rejected(with_line("aten.v(" + deep), "lists are nested deeper than 16");
}

TEST(TextTest, rejects_unknown_graphs) {
  expect_rejected("component c { graph () { return graph:1 } }", "1:33: there is no graph 1");
  expect_rejected("graph 1 () { return }", "graph 1 comes at the place of graph 0");
}

TEST(TextTest, rejects_graphs_without_return) {
  expect_rejected("graph () { }", "expected 'return' at the end of the graph");
  expect_rejected("graph () { return", "expected an argument, found the end");
}

TEST(TextTest, rejects_bad_locations) {
  expect_rejected(with_line("aten.f(%x) loc()"), "expected a string");
  expect_rejected(with_line("aten.f(%x) loc(\"a\", \"b\", \"c\")"), "expected ':' and a line number");
  expect_rejected(with_line("aten.f(%x) loc(\"a\", \"b\":99999999999)"), "is not between");
  expect_rejected(with_line("aten.f(%x) loc(\"a\", \"b\":1, \"c\")"), "expected ')'");
}

TEST(TextTest, rejects_bad_interfaces) {
  expect_rejected("output odd graph () { return }", "unknown kind of output");
  expect_rejected("input x = %x graph (%x: f32[2]) { return }", "expected a string");
  expect_rejected("specialized \"x\" dim 1.5 = 2 because \"\" graph () { return }", "is not an integer");
}

// A short text must not stand for a huge program.
TEST(TextTest, rejects_defaults_far_larger_than_the_text) {
  std::string text = "schema aten::h(";
  for (int i = 0; i < 1000; ++i) text += (i > 0 ? ", int a" : "int a") + std::to_string(i) + "=1";
  text += ") -> ()\ngraph () {\n";
  for (int i = 0; i < 1000; ++i) text += "aten.h()\n";
  expect_rejected(text + "return\n}", "the defaults that are left out are far larger than the text");
}

}  // namespace
}  // namespace argosy
