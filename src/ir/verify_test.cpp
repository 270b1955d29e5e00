#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/rewriter.h"
#include "ir/text.h"

namespace argosy {

// Graphs cannot be broken through their interface, so tests of the rules that a Rewriter keeps reach for the members:
// access checks do not apply to the arguments of an explicit instantiation.
auto& nodes_of(Graph& graph);
auto& values_of(Graph& graph);
auto& inputs_of(Graph& graph);
auto& last_of(Graph& graph);
auto& live_values_of(Graph& graph);
template <auto nodes, auto values, auto inputs, auto last, auto live_values>
struct Members {
  friend auto& nodes_of(Graph& graph) { return graph.*nodes; }
  friend auto& values_of(Graph& graph) { return graph.*values; }
  friend auto& inputs_of(Graph& graph) { return graph.*inputs; }
  friend auto& last_of(Graph& graph) { return graph.*last; }
  friend auto& live_values_of(Graph& graph) { return graph.*live_values; }
};
template struct Members<&Graph::nodes_, &Graph::values_, &Graph::inputs_, &Graph::last_, &Graph::live_values_>;

namespace {

constexpr std::string_view kBase = R"(
schema aten::add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
schema aten::cat(Tensor[] tensors, int dim=0) -> Tensor
schema aten::dropout(Tensor input, float p, bool train) -> Tensor
schema aten::empty(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None) -> Tensor
schema aten::index(Tensor self, Tensor?[] indices) -> Tensor
schema aten::item(Tensor self) -> Scalar
schema aten::max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)
schema aten::rand(int[] size, Generator? generator=None, MemoryFormat? format=None) -> Tensor
schema aten::mode(Tensor self, str mode, float[] scales, bool[3] mask, str[] names, int[][] pads) -> ()
schema aten::split(Tensor self, int size) -> Tensor[]
schema aten::mixed(Tensor self) -> (Tensor, Tensor[], SymInt)
schema aten::sym_size(Tensor self, int dim) -> SymInt
schema aten::sum(Tensor self, Scalar[] scales) -> Tensor
schema aten::odd(Foo x) -> ()
weight @w: f32[2] parameter
weight @b: f32[2] buffer
symbol s0
graph (%x: f32[s0, 2], %n: int, %f: float, %b: bool) weights (%w = @w) {
  NODES
  return %x
}
)";

std::string with(std::string_view nodes) {
  std::string text(kBase);
  return text.replace(text.find("NODES"), 5, nodes);
}

Program parsed(std::string_view text) {
  Result<Program> program = parse(text);
  if (!program) throw std::runtime_error(to_text(program.error()));
  return *std::move(program);
}

std::string errors_of(const Program& program) {
  std::string text;
  for (const Error& error : verify(program).errors) text += to_text(error);
  return text;
}

void expect_fine(std::string_view nodes) { EXPECT_EQ(errors_of(parsed(with(nodes))), "") << nodes; }

void expect_error(const Program& program, std::string_view message) {
  std::string errors = errors_of(program);
  EXPECT_NE(errors.find(message), std::string::npos) << errors;
  EXPECT_FALSE(verify_first(program));
}

void expect_rejected(std::string_view nodes, std::string_view message) { expect_error(parsed(with(nodes)), message); }

Graph& entry_of(Program& program) { return program.components[0].graphs[0]; }

TEST(VerifyTest, accepts_what_fits_its_schema) {
  expect_fine("%y: f32[s0, 2] = aten.add(%x, %w, alpha=2.5)");
  expect_fine("%y: f32[s0, 2] = aten.add(%x, %w, alpha=%n)");
  expect_fine("%y: f32[s0, 2] = aten.add(%x, %w, alpha=complex(0.0, 1.0))");
  expect_fine("%y: f32[s0, 2] = aten.cat([%x, %w])  %z: f32[] = aten.cat([])");
  expect_fine("%y: f32[2] = aten.dropout(%x, p=0.5, train=false)");
  expect_fine("%y: f32[2] = aten.dropout(%x, p=%n, train=%b)  %z: f32[2] = aten.dropout(%x, p=%f, train=true)");
  expect_fine("%y: f32[2] = aten.empty([1, %n], dtype=dtype:f32, layout=layout:strided, device=device:cpu)");
  expect_fine("%y: f32[2] = aten.index(%x, [none, %w])");
  expect_fine("%y: int = aten.item(%x)  %z: float = aten.item(%x)  %k: bool = aten.item(%x)");
  expect_fine("%y: f32[2], %z: i64[2] = aten.max.dim(%x, 0)");
  expect_fine("%y: f32[2] = aten.rand([], format=format:preserve)");
  expect_fine("aten.mode(%x, \"a\", [1.0], [true, false, true], [\"b\"], [[1], [%n, 2], []])");
  expect_fine("%y: f32[2], %z: f32[2] = aten.split(%x, 2)  aten.split(%x, 2)");
  expect_fine("%y: f32[2], %z: f32[2], %k: f32[1], %l: int = aten.mixed(%x)  %m: f32[2], %o: int = aten.mixed(%x)");
  expect_fine("%y: f32[2] = aten.sum(%x, list[1, 2.0, %n])  %z: f32[2] = aten.sum(%x, [1, %n])");
  expect_fine("%y: int(s0) = aten.sym_size(%x, 0)  %z: bool = _operator.gt(%y, 2)");
}

TEST(VerifyTest, an_error_names_node_place_and_schema) {
  Program program =
      parsed(with("%y: f32[2] = aten.dropout(%x, p=1, train=false) loc(\"m.drop\", \"Dropout\", \"m.py\":7)"));
  Diagnostics diagnostics = verify(program);
  ASSERT_EQ(diagnostics.errors.size(), 1u);
  EXPECT_EQ(to_text(diagnostics.errors[0]),
            "error[invalid-input]: argument p of aten.dropout.default: expected float, found 1\n"
            "  in node %y = aten.dropout.default(…)\n"
            "  from m.drop (Dropout), m.py:7\n"
            "  in component \"model\"\n"
            "  hint: its schema is aten::dropout(Tensor input, float p, bool train) -> Tensor\n");
}

TEST(VerifyTest, collects_errors_up_to_a_limit) {
  std::string nodes;
  for (int i = 0; i < 10; ++i) nodes += "aten.split(%n, 2)\n";
  Program program = parsed(with(nodes));
  EXPECT_EQ(verify(program).errors.size(), 10u);
  EXPECT_EQ(verify(program, 3).errors.size(), 3u);
}

// ---- Arguments ----

TEST(VerifyTest, rejects_wrong_arguments) {
  expect_rejected("%y: f32[2] = aten.add(%x, %n)",
                  "argument other of aten.add.default: expected Tensor, found %n, a value of kind int");
  expect_rejected("%y: f32[2] = aten.add(%x, 1)", "expected Tensor, found 1");
  expect_rejected("%y: f32[2] = aten.add(%x, none)", "expected Tensor, found none");
  expect_rejected("%y: f32[2] = aten.add(%x, %w, alpha=\"1\")", "expected Scalar, found \"1\"");
  expect_rejected("%y: f32[2] = aten.add(%x, %w, alpha=%x)", "expected Scalar, found %x, a value of kind tensor");
  expect_rejected("%y: f32[2] = aten.cat(ints[])", "expected Tensor[], found []");
  expect_rejected("%y: f32[2] = aten.cat([%n])", "expected Tensor[], found values[%n]");
  expect_rejected("%y: f32[2] = aten.cat([none])", "expected Tensor[]");
  expect_rejected("%y: f32[2] = aten.cat(list[%x])", "expected Tensor[]");
  expect_rejected("%y: f32[2] = aten.cat([%x], dim=1.0)", "expected int, found 1.0");
  expect_rejected("%y: f32[2] = aten.cat([%x], dim=%f)", "expected int, found %f, a value of kind float");
  expect_rejected("%y: f32[2] = aten.cat([%x], dim=true)", "expected int, found true");
  expect_rejected("%y: f32[2] = aten.index(%x, [%n])", "expected Tensor?[], found values[%n]");
  expect_rejected("%y: f32[2] = aten.dropout(%x, p=%b, train=false)", "expected float, found %b, a value of kind bool");
  expect_rejected("%y: f32[2] = aten.dropout(%x, p=0.5, train=0)", "expected bool, found 0");
  expect_rejected("%y: f32[2] = aten.dropout(%x, p=0.5, train=%n)", "expected bool, found %n");
  expect_rejected("%y: f32[2] = aten.empty(3)", "expected SymInt[], found 3");
  expect_rejected("%y: f32[2] = aten.empty([%x])", "expected SymInt[], found [%x]");
  expect_rejected("%y: f32[2] = aten.empty(list[1])", "expected SymInt[], found list[1]");
  expect_rejected("%y: f32[2] = aten.empty([], dtype=6)", "expected ScalarType?, found 6");
  expect_rejected("%y: f32[2] = aten.empty([], layout=format:preserve)", "expected Layout?");
  expect_rejected("%y: f32[2] = aten.empty([], device=\"cpu\")", "expected Device?");
  expect_rejected("%y: f32[2] = aten.rand([], generator=1)", "expected Generator?, found 1");
  expect_rejected("%y: f32[2] = aten.rand([], format=layout:strided)", "expected MemoryFormat?");
  expect_rejected("%y: f32[2] = aten.sum(%x, list[\"a\"])", "expected Scalar[]");
  expect_rejected("%y: f32[2] = aten.sum(%x, strings[])", "expected Scalar[]");
  expect_rejected("aten.odd(1)", "expected a type that graphs do not have, found 1");
}

TEST(VerifyTest, rejects_wrong_lists) {
  auto mode = [](std::string_view arguments) { return "aten.mode(%x, " + std::string(arguments) + ")"; };
  expect_rejected(mode("none, [], [], [], []"), "argument mode of aten.mode.default: expected str, found none");
  expect_rejected(mode("\"a\", ints[1], [], [], []"), "expected float[], found [1]");
  expect_rejected(mode("\"a\", [], ints[], [], []"), "expected bool[3], found []");
  expect_rejected(mode("\"a\", [], [], bools[], []"), "expected str[], found bools[]");
  expect_rejected(mode("\"a\", [], [], [], ints[1]"), "expected int[][], found [1]");
  expect_rejected(mode("\"a\", [], [], [], [1]"), "expected int[][], found list[1]");
  expect_rejected(mode("\"a\", [], [], [], [[%x]]"), "expected int[][]");
}

TEST(VerifyTest, rejects_a_wrong_number_of_arguments) {
  Program program = parsed(with("%y: f32[s0, 2] = aten.add(%x, %w)"));
  Rewriter(entry_of(program))
      .create(program.schemas.find("aten.add.default").value(), {entry_of(program).inputs()[0]}, {});
  expect_error(program, "op aten.add.default has 3 arguments, but the node has 1");
}

TEST(VerifyTest, rejects_wrong_results) {
  expect_rejected("aten.add(%x, %w)", "op aten.add.default has 1 results, but the node has 0");
  expect_rejected("%y: f32[2] = aten.max.dim(%x, 0)", "op aten.max.dim has 2 results, but the node has 1");
  expect_rejected("%y: f32[2] = aten.mixed(%x)", "op aten.mixed.default has at least 2 results, but the node has 1");
  expect_rejected("%y: int = aten.add(%x, %w)", "result 0 of aten.add.default: expected Tensor, found %y of kind int");
  expect_rejected("%y: f32[2] = aten.item(%x)", "expected Scalar, found %y of kind tensor");
  expect_rejected("%y: float = aten.sym_size(%x, 0)", "expected SymInt, found %y of kind float");
  expect_rejected("%y: f32[2], %z: int = aten.split(%x, 2)", "result 1 of aten.split.default: expected Tensor");
  expect_rejected("%y: f32[2], %z: int, %k: int = aten.mixed(%x)", "result 1 of aten.mixed.default: expected Tensor");
  expect_rejected("%y: f32[2], %z: f32[2], %k: f32[] = aten.mixed(%x)",
                  "result 2 of aten.mixed.default: expected SymInt");
}

// ---- Types, weights ----

TEST(VerifyTest, rejects_bad_types) {
  expect_rejected("%y: f32[s0, 2] strides [1] = aten.add(%x, %w)", "%y has 2 dims, but 1 strides");
  expect_rejected("%y: f32[s0, ?] = aten.add(%x, %w)", "dim 1 of %y is not known");
  expect_rejected("%y: f32[s0, -2] = aten.add(%x, %w)", "dim 1 of %y is negative");
  expect_rejected("%y: f32[2] strides [?] = aten.add(%x, %w)", "stride 0 of %y is not known");
}

TEST(VerifyTest, rejects_weights_that_do_not_fit) {
  std::string text = with("");
  auto bound = [&](std::string_view definition) {
    std::string changed = text;
    return changed.replace(changed.find("%w = @w"), 7, definition);
  };
  expect_error(parsed(bound("%w: f16[2] = @w")), "%w is f16[2], but weight \"w\" is f32[2]");
  expect_error(parsed(bound("%w: f32[3] = @w")), "%w is f32[3], but weight \"w\" is f32[2]");
  expect_error(parsed(bound("%w: f32[s0] = @w")), "%w is f32[s0], but weight \"w\" is f32[2]");
  expect_error(parsed(bound("%w: f32[] = @w")), "but weight \"w\" is f32[2]");
  expect_error(parsed(bound("%w: int = @w")), "%w is int, but weight \"w\" is f32[2]");
  Program program = parsed(text);
  Rewriter(entry_of(program)).add_weight({.name = "v", .type = SymType{}}, WeightId{9});
  expect_error(program, "%v is bound to a weight that does not exist");
}

TEST(VerifyTest, rejects_bad_weights) {
  auto changed = [](auto change) {
    Program program = parsed(with(""));
    change(program.weights);
    return program;
  };
  using Weights = std::vector<Weight>;
  expect_error(changed([](Weights& w) { w[1].name = ""; }), "weight 1 has no name");
  expect_error(changed([](Weights& w) { w[1].name = "w"; }), "two weights are named \"w\"");
  expect_error(changed([](Weights& w) { w[1].shape = {-1}; }), "weight \"b\" has an impossible shape");
  expect_error(changed([](Weights& w) { w[1].source = nullptr; }), "weight \"b\" has no source");
  expect_error(changed([](Weights& w) { w[1].dtype = DType::kF16; }),
               "weight \"b\" has another dtype or shape than its source");
  expect_error(changed([](Weights& w) { w[1].tied_to = WeightId{1}; }),
               "tied to a weight that does not come before it");
  expect_error(changed([](Weights& w) { w[1].tied_to = WeightId{7}; }),
               "tied to a weight that does not come before it");
  Program tied = parsed("weight @a: f32[2] buffer weight @b: f32[3] buffer = @a graph () { return }");
  expect_error(tied, "weight \"b\" is tied to \"a\" of another dtype or shape");
}

// ---- Components ----

TEST(VerifyTest, rejects_bad_components) {
  Program unnamed = parsed("component \"\" { graph () { return } }");
  expect_error(unnamed, "a component has no name");
  Program twice = parsed("component a { graph () { return } } component b { graph () { return } }");
  twice.components[1].name = "a";
  expect_error(twice, "two components are named \"a\"");
  Program empty = parsed("graph () { return }");
  empty.components[0].graphs.clear();
  expect_error(empty, "it has no graph");
  Program no_symbols = parsed("graph () { return }");
  no_symbols.components[0].symbols = nullptr;
  expect_error(no_symbols, "it has no symbols");
}

TEST(VerifyTest, rejects_bad_inputs) {
  auto with_inputs = [](std::string_view inputs) {
    return parsed(std::string(inputs) +
                  " schema aten::item(Tensor self) -> Scalar\ngraph (%x: f32[2]) { %y: int = aten.item(%x) return }");
  };
  expect_error(with_inputs("input \"\" = %x"), "an input has no name");
  expect_error(with_inputs("input \"a\" = %x input \"a\" = 1"), "two inputs are named \"a\"");
  expect_error(with_inputs("input \"a\" = %x input \"b\" = [1]"), "input \"b\" is fixed to something other than");
  expect_error(with_inputs("input \"a\" = %y input \"b\" = %x"), "input \"a\" stands for a value that is no input");
  expect_error(with_inputs("input \"a\" = %x input \"b\" = %x"), "input \"b\" stands for %x, as another input does");
  expect_error(with_inputs("input \"a\" = 1"), "no input stands for %x of the entry graph");
  Program both = with_inputs("");
  both.components[0].inputs[0].constant = true;
  expect_error(both, "input \"x\" has a value and a constant");
}

TEST(VerifyTest, rejects_bad_outputs) {
  auto with_output = [](std::string_view output, std::string_view result = "%x") {
    return parsed("weight @p: f32[2] parameter weight @b: f32[2] buffer\n" + std::string(output) +
                  " graph (%x: f32[2]) { return " + std::string(result) + " }");
  };
  EXPECT_EQ(errors_of(with_output("output input_mutation target \"x\"")), "");
  EXPECT_EQ(errors_of(with_output("output buffer_mutation target \"b\"")), "");
  EXPECT_EQ(errors_of(with_output("output parameter_mutation target \"p\"")), "");
  expect_error(with_output("output user output user"), "2 outputs are described, but the entry graph returns 1");
  expect_error(with_output("output user target \"b\""), "output 0 (user) has a target, which only mutations have");
  expect_error(with_output("output input_mutation target \"y\""), "targets \"y\", which is no input");
  expect_error(with_output("output buffer_mutation target \"p\""), "targets \"p\", which is no buffer");
  expect_error(with_output("output buffer_mutation target \"q\""), "targets \"q\", which is no buffer");
  expect_error(with_output("output parameter_mutation target \"b\""), "targets \"b\", which is no parameter");
  expect_error(with_output("output buffer_mutation target \"b\"", "3"), "output 0 (buffer_mutation) is not a tensor");
}

// ---- Sub-graphs ----

Program with_graphs(std::string_view nodes, std::string_view graphs) {
  return parsed("component c { graph (%x: f32[2], %b: bool, %n: int) { " + std::string(nodes) + " return } " +
                std::string(graphs) + " }");
}

TEST(VerifyTest, accepts_calls_of_sub_graphs) {
  constexpr std::string_view kSame = "graph (%a: f32[2]) { return %a } ";
  std::string two = std::string(kSame) + std::string(kSame);
  EXPECT_EQ(errors_of(with_graphs("%y: f32[2] = higher_order.cond(%b, graph:1, graph:2, values[%x])", two)), "");
  EXPECT_EQ(
      errors_of(with_graphs("%y: int, %z: f32[2] = higher_order.while_loop(graph:1, graph:2, list[0, %x], [%n])",
                            "graph (%i: int, %a: f32[2], %m: int) { %c: bool = _operator.lt(%i, %m) return %c }"
                            "graph (%i: int, %a: f32[2], %m: int) { %j: int = _operator.add(%i, 1) return %j, %a }")),
      "");
  EXPECT_EQ(errors_of(with_graphs(
                "%y: f32[2] = higher_order.wrap_with_set_grad_enabled(enable_grad=false, body=graph:1, %x)", kSame)),
            "");
  EXPECT_EQ(errors_of(with_graphs("%y: f32[2] = higher_order.scan(graph:1, values[], values[%x], values[])", kSame)),
            "");
  EXPECT_EQ(errors_of(with_graphs("%y: f32[2] = higher_order.associative_scan(graph:1, values[%x], values[])",
                                  "graph (%a: f32[2], %b: f32[2]) { return %a }")),
            "");
}

TEST(VerifyTest, rejects_calls_that_do_not_fit) {
  auto cond = [](std::string_view first, std::string_view operands = "values[%x]") {
    return with_graphs("%y: f32[2] = higher_order.cond(%b, graph:1, graph:2, " + std::string(operands) + ")",
                       std::string(first) + " graph (%a: f32[2]) { return %a }");
  };
  expect_error(cond("graph () { return 1 }"),
               "true_graph (graph 1) of higher_order.cond takes 0 inputs, but 1 are passed");
  expect_error(cond("graph (%a: f32[2]) { return }"),
               "true_graph (graph 1) of higher_order.cond returns 0 values where 1 are needed");
  expect_error(cond("graph (%a: int) { return 1 }"), "gets %x for its input %a of another kind");
  expect_error(cond("graph (%a: f32[2]) { %k: int = _operator.neg(2) return %k }"),
               "returns %k for the result %y of another kind");
  expect_error(cond("graph (%a: f32[2]) { return %a }", "[1, 2]"), "takes 1 inputs, but 2 are passed");

  auto loop = [](std::string_view condition, std::string_view outputs) {
    return with_graphs(std::string(outputs) + " = higher_order.while_loop(graph:1, graph:2, values[%x], values[])",
                       "graph (%a: f32[2]) { " + std::string(condition) + " } graph (%a: f32[2]) { return %a }");
  };
  expect_error(loop("return", "%y: f32[2]"),
               "cond_graph (graph 1) of higher_order.while_loop returns 0 values where 1 are needed");
  expect_error(loop("return true", "%y: f32[2], %z: f32[2]"),
               "higher_order.while_loop carries 1 values, but the node has 2 results");
  expect_error(
      with_graphs("higher_order.wrap_with_autocast(\"cpu\", none, true, none, graph:1, %x)", "graph () { return }"),
      "body (graph 1) of higher_order.wrap_with_autocast takes 0 inputs, but 1 are passed");
  expect_error(with_graphs("higher_order.cond(%b, 1, graph:1, values[])", "graph () { return }"),
               "expected Graph, found 1");
}

TEST(VerifyTest, rejects_graphs_that_are_not_used_once) {
  constexpr std::string_view kCond = "higher_order.cond(true, graph:1, graph:2, values[]) ";
  constexpr std::string_view kEmpty = "graph () { return } ";
  expect_error(with_graphs("higher_order.cond(%b, graph:1, graph:1, values[])", kEmpty), "graph 1 is used 2 times");
  expect_error(with_graphs("", kEmpty), "graph 1 cannot be reached from the entry graph");
  expect_error(
      with_graphs("", "graph () { higher_order.cond(true, graph:1, graph:2, values[]) return } graph () { return }"),
      "graph 1 cannot be reached");
  expect_error(with_graphs("higher_order.cond(%b, graph:0, graph:1, values[])", kEmpty),
               "the entry graph is used as a sub-graph");
  EXPECT_EQ(errors_of(with_graphs(kCond, std::string(kEmpty) + std::string(kEmpty))), "");
}

TEST(VerifyTest, rejects_graphs_in_lists_and_results) {
  expect_error(with_graphs("%k: int = _operator.neg(list[graph:1])", "graph () { return }"),
               "argument a of _operator.neg has a graph inside a list");
  expect_error(parsed("component c { graph () { return graph:0 } }"), "result 0 of the graph is a graph");
}

// ---- What only a bug of ours can break ----

Program sound() { return parsed(with("%y: f32[s0, 2] = aten.add(%x, %w)  %z: f32[s0, 2] = aten.add(%y, %y)")); }

TEST(VerifyTest, rejects_ids_that_lead_nowhere) {
  Program no_op = sound();
  Rewriter(entry_of(no_op)).create(OpId{99999}, {}, {});
  expect_error(no_op, "node 2 has no op");
  Program no_location = sound();
  Rewriter(entry_of(no_location)).set_location(NodeId{0}, LocationId{5});
  expect_error(no_location, "node 0 of op aten.add.default has a location that does not exist");
  Program no_graph = sound();
  OpId neg = no_graph.schemas.find("_operator.neg").value();
  Rewriter(entry_of(no_graph)).create(neg, {GraphId{3}}, {{.name = "k", .type = SymType{}}});
  expect_error(no_graph, "argument a of _operator.neg names graph 3, which does not exist");
  Program no_value = sound();
  Rewriter(entry_of(no_value)).create(neg, {ValueId{}}, {{.name = "k", .type = SymType{}}});
  expect_error(no_value, "argument a of _operator.neg names no value");
  Program dead = sound();
  nodes_of(entry_of(dead))[1].node.arguments[0] = ValueId{77};
  expect_error(dead, "argument self of aten.add.default uses value 77, which does not exist");
  Program deep = sound();
  Argument nested = int64_t{1};
  for (int i = 0; i < 17; ++i) nested = Argument(ArgumentList{{nested}});
  Rewriter(entry_of(deep)).create(neg, {nested}, {{.name = "k", .type = SymType{}}});
  expect_error(deep, "argument a of _operator.neg has lists nested too deeply");
}

TEST(VerifyTest, rejects_a_broken_order) {
  Program late = sound();
  ValueId z = entry_of(late).find("z").value();
  nodes_of(entry_of(late))[0].node.arguments[0] = z;
  expect_error(late, "argument self of aten.add.default uses %z before it is defined");
  Program cyclic = sound();
  nodes_of(entry_of(cyclic))[1].next = NodeId{0};
  expect_error(cyclic, "the list of nodes is broken");
  Program backwards = sound();
  nodes_of(entry_of(backwards))[1].order = 0;
  expect_error(backwards, "the order of nodes is broken");
  Program unlinked = sound();
  nodes_of(entry_of(unlinked))[1].previous = NodeId{};
  expect_error(unlinked, "the order of nodes is broken");
  Program wrong_end = sound();
  last_of(entry_of(wrong_end)) = NodeId{0};
  expect_error(wrong_end, "the list of nodes is broken");
}

TEST(VerifyTest, rejects_broken_values) {
  auto changed = [](auto change) {
    Program program = sound();
    change(entry_of(program));
    return program;
  };
  ValueId y = sound().components[0].entry().find("y").value();
  expect_error(changed([&](Graph& g) { values_of(g)[y.index].value.uses.pop_back(); }), "the use list of %y is broken");
  expect_error(changed([&](Graph& g) { values_of(g)[y.index].value.uses[0].item = 4; }),
               "the use list of %y is broken");
  expect_error(changed([&](Graph& g) { values_of(g)[y.index].value.name = "z"; }), "is not found by its name \"z\"");
  expect_error(changed([&](Graph& g) { values_of(g)[y.index].value.producer = NodeId{1}; }),
               "%y does not know what defines it");
  expect_error(changed([&](Graph& g) { values_of(g)[y.index].value.weight = WeightId{0}; }),
               "%y does not know what defines it");
  expect_error(changed([&](Graph& g) { nodes_of(g)[1].node.outputs.push_back(y); }), "%y is defined twice");
  expect_error(changed([&](Graph& g) { nodes_of(g)[1].node.outputs.push_back(ValueId{99}); }),
               "value 99 is defined but does not exist");
  expect_error(changed([&](Graph& g) { inputs_of(g).pop_back(); }), "%b is not defined by any node or input");
  expect_error(changed([&](Graph& g) { ++live_values_of(g); }), "the number of values is broken");
}

}  // namespace
}  // namespace argosy
