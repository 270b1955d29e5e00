#include "frontends/pt2/graph_json.h"

#include <gtest/gtest.h>

#include <limits>

#include "frontends/pt2/graph_json_testing.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace argosy {
namespace {

using T = GraphText;

Program read_ok(const GraphText& text) {
  Result<Program> program = read_test_program(text.text());
  EXPECT_TRUE(program.has_value()) << (program ? "" : to_text(program.error()));
  if (!program) return {};
  for (const Error& error : verify(*program).errors) ADD_FAILURE() << to_text(error);
  return *std::move(program);
}

std::string error_of(const std::string& text) {
  Result<Program> program = read_test_program(text);
  EXPECT_FALSE(program.has_value());
  return program ? std::string() : program.error().message;
}
std::string error_of(const GraphText& text) { return error_of(text.text()); }

const Node& node_at(const Program& program, size_t position) {
  const Graph& graph = program.components[0].entry();
  NodeId id = graph.first();
  while (position-- > 0) id = graph.next(id);
  return graph[id];
}
std::string op_at(const Program& program, size_t position) {
  return program.schemas[node_at(program, position).op].name;
}

GraphText one_node(const std::string& target, const std::vector<std::string>& arguments, int dtype = 7,
                   std::vector<int64_t> shape = {2, 4}) {
  GraphText text;
  text.add_input("x", 7, {2, 4})
      .add_input("i", 5, {2, 4})
      .add_node(target, arguments, "y", dtype, shape)
      .add_output("y");
  return text;
}

TEST(GraphJson, reads_inputs_weights_and_nodes) {
  GraphText text;
  text.add_parameter("p_w", "layer.weight", 7, {4}).add_input("x", 7, {2, 4});
  text.add_node("torch.ops.aten.mul.Tensor",
                {T::argument("self", T::value("x")), T::argument("other", T::value("p_w"))}, "y", 7, {2, 4});
  text.add_output("y");
  Program program = read_ok(text);
  const Component& component = program.components[0];
  ASSERT_EQ(component.inputs.size(), 1u);
  EXPECT_EQ(component.inputs[0].name, "x");
  ASSERT_EQ(component.entry().weights().size(), 1u);
  EXPECT_EQ(program.weights[0].name, "layer.weight");
  EXPECT_EQ(op_at(program, 0), "aten.mul.Tensor");
  EXPECT_TRUE(component.entry()[component.inputs[0].value].tensor()->strides.empty());
}

TEST(GraphJson, fills_in_defaults_in_the_order_of_the_schema) {
  Program program = read_ok(one_node("torch.ops.aten.avg_pool2d.default",
                                     {T::argument("kernel_size", R"({"as_ints": [2, 3]})"),
                                      T::argument("self", T::value("x")), T::argument("padding", R"({"as_int": 1})")}));
  const Node& node = node_at(program, 0);
  ASSERT_EQ(node.arguments.size(), 7u);
  EXPECT_TRUE(node.arguments[0].is<ValueId>());
  EXPECT_EQ(node.arguments[1], Argument(IntList{int64_t{2}, int64_t{3}}));
  EXPECT_EQ(node.arguments[2], Argument(IntList{}));
  EXPECT_EQ(node.arguments[3], Argument(IntList{int64_t{1}, int64_t{1}}));
  EXPECT_EQ(node.arguments[5], Argument(true));
  EXPECT_TRUE(node.arguments[6].is<None>());
}

TEST(GraphJson, converts_ints_to_floats_and_renumbers_enums) {
  GraphText text = one_node("torch.ops.aten.dropout.default",
                            {T::argument("input", T::value("x")), T::argument("p", R"({"as_int": 1})"),
                             T::argument("train", R"({"as_bool": false})")});
  text.add_node("torch.ops.aten.full.default",
                {T::argument("size", R"({"as_ints": []})"), T::argument("fill_value", R"({"as_float": "-Infinity"})"),
                 T::argument("dtype", R"({"as_scalar_type": 13})"), T::argument("layout", R"({"as_layout": 7})"),
                 T::argument("device", R"({"as_device": {"type": "cpu", "index": null}})")},
                "f", 13, {});
  text.add_node("torch.ops.aten.clone.default",
                {T::argument("self", T::value("f")), T::argument("memory_format", R"({"as_memory_format": 1})")}, "c",
                13, {});
  Program program = read_ok(text);
  EXPECT_EQ(node_at(program, 0).arguments[1], Argument(1.0));
  EXPECT_EQ(node_at(program, 1).arguments[1], Argument(-std::numeric_limits<double>::infinity()));
  EXPECT_EQ(node_at(program, 1).arguments[2], Argument(DType::kBF16));
  EXPECT_EQ(node_at(program, 1).arguments[3], Argument(TensorLayout::kStrided));
  EXPECT_EQ(node_at(program, 2).arguments[1], Argument(MemoryFormat::kContiguous));
}

TEST(GraphJson, reads_symbolic_sizes_and_optional_tensors) {
  GraphText text;
  text.tensor_values.push_back(T::tensor("x", 7, {T::symbol("s0"), T::size(4)}, {T::size(4), T::size(1)}));
  text.add_declared_input("x").add_input("i", 5, {2});
  text.nodes.push_back(T::node("torch.ops.aten.sym_size.int",
                               {T::argument("self", T::value("x")), T::argument("dim", R"({"as_int": 0})")},
                               {R"({"as_sym_int": {"as_name": "n"}})"}));
  text.sym_int_values.push_back("\"n\": " + T::symbol("s0"));
  text.nodes.push_back(T::node("torch.ops.aten.view.default",
                               {T::argument("self", T::value("x")),
                                T::argument("size", R"({"as_sym_ints": [{"as_int": 4}, {"as_name": "n"}]})")},
                               {T::value("v")}));
  text.tensor_values.push_back(T::tensor("v", 7, {T::size(4), T::symbol("s0")}, {T::symbol("s0"), T::size(1)}));
  text.nodes.push_back(T::node(
      "torch.ops.aten.index.Tensor",
      {T::argument("self", T::value("v")),
       T::argument("indices", format(R"({{"as_optional_tensors": [{{"as_none": true}}, {}]}})", T::value("i")))},
      {T::value("y")}));
  text.tensor_values.push_back(T::tensor("y", 7, {4, 2}));
  text.ranges.push_back(R"("s0": {"min_val": 2, "max_val": 64})");
  text.add_output("y");
  Program program = read_ok(text);
  const Component& component = program.components[0];
  SymExpr batch = component.symbols->symbol("s0");
  EXPECT_EQ(component.symbols->range(batch), (SymRange{2, 64}));
  const Graph& graph = component.entry();
  ValueId n = *graph.find("n");
  EXPECT_EQ(graph[n].number()->expression, batch);
  EXPECT_EQ(node_at(program, 1).arguments[1], Argument(IntList{int64_t{4}, n}));
  EXPECT_TRUE(graph[*graph.find("v")].tensor()->strides.empty());
  const ValueList* indices = node_at(program, 2).arguments[1].get_if<ValueList>();
  ASSERT_NE(indices, nullptr);
  EXPECT_FALSE((*indices)[0].is_valid());
  EXPECT_EQ(component.attributes.at("pt2.symbol_hints"), "s0=3");
}

TEST(GraphJson, keeps_strides_that_are_not_row_major) {
  GraphText text;
  text.tensor_values.push_back(T::tensor("x", 7, {T::size(2), T::size(4)}, {T::size(1), T::size(2)}));
  text.add_declared_input("x").add_output("x");
  Program program = read_ok(text);
  const Graph& graph = program.components[0].entry();
  ASSERT_EQ(graph[graph.inputs()[0]].tensor()->strides.size(), 2u);
}

TEST(GraphJson, numbers_for_tensors_become_scalars) {
  Program program = read_ok(one_node("torch.ops.aten.add.Tensor",
                                     {T::argument("self", T::value("x")), T::argument("other", R"({"as_int": 1})")}));
  EXPECT_EQ(op_at(program, 0), "aten.add.Scalar");
  EXPECT_EQ(node_at(program, 0).arguments[1], Argument(int64_t{1}));
}

TEST(GraphJson, numbers_without_a_scalar_overload_become_constants) {
  Program program = read_ok(one_node("torch.ops.aten.maximum.default", {T::argument("self", T::value("x")),
                                                                        T::argument("other", R"({"as_float": 0.5})")}));
  EXPECT_EQ(op_at(program, 0), "aten.maximum.default");
  ASSERT_EQ(program.weights.size(), 1u);
  EXPECT_EQ(program.weights[0].dtype, DType::kF32);
  EXPECT_TRUE(program.weights[0].shape.empty());
}

TEST(GraphJson, promotion_becomes_casts) {
  Program program = read_ok(
      one_node("torch.ops.aten.add.Tensor", {T::argument("self", T::value("x")), T::argument("other", T::value("i"))}));
  ASSERT_EQ(program.components[0].entry().node_count(), 2u);
  EXPECT_EQ(op_at(program, 0), "aten._to_copy.default");
  EXPECT_EQ(node_at(program, 0).arguments[1], Argument(DType::kF32));
  EXPECT_EQ(node_at(program, 1).arguments[1], Argument(node_at(program, 0).outputs[0]));
}

TEST(GraphJson, storages_follow_from_schemas) {
  GraphText text = one_node("torch.ops.aten.transpose.int",
                            {T::argument("self", T::value("x")), T::argument("dim0", R"({"as_int": 0})"),
                             T::argument("dim1", R"({"as_int": 1})")},
                            7, {4, 2});
  text.add_node("torch.ops.aten.relu.default", {T::argument("self", T::value("x"))}, "r", 7, {2, 4});
  text.add_node("torch.ops.aten.reshape.default",
                {T::argument("self", T::value("x")), T::argument("shape", R"({"as_ints": [8]})")}, "flat", 7, {8});
  text.add_node("torch.ops.aten.to.dtype",
                {T::argument("self", T::value("x")), T::argument("dtype", R"({"as_scalar_type": 7})")}, "same", 7,
                {2, 4});
  text.add_node("torch.ops.aten.to.dtype",
                {T::argument("self", T::value("x")), T::argument("dtype", R"({"as_scalar_type": 13})")}, "half", 13,
                {2, 4});
  text.add_node("torch.ops.aten.add_.Tensor", {T::argument("self", T::value("r")), T::argument("other", T::value("x"))},
                "sum", 7, {2, 4});
  Program program = read_ok(text);
  const Graph& graph = program.components[0].entry();
  auto storage = [&](std::string_view name) { return graph[*graph.find(name)].storage; };
  EXPECT_EQ(storage("y"), storage("x"));
  EXPECT_EQ(storage("flat"), storage("x"));
  EXPECT_EQ(storage("sum"), storage("r"));
  EXPECT_NE(storage("r"), storage("x"));
  EXPECT_NE(storage("half"), storage("x"));
  EXPECT_TRUE(storage("half").is_valid());
  EXPECT_EQ(storage("same"), storage("x"));
}

std::string cond_node(const std::string& true_graph, const std::string& false_graph) {
  return format(
      R"({{"target": "torch.ops.higher_order.cond", "inputs": [{}, )"
      R"({{"name": "", "arg": {{"as_graph": {{"name": "t", "graph": {}}}}}, "kind": 1}}, )"
      R"({{"name": "", "arg": {{"as_graph": {{"name": "f", "graph": {}}}}}, "kind": 1}}, )"
      R"({{"name": "", "arg": {{"as_tensors": [{{"name": "x"}}]}}, "kind": 1}}], "outputs": [{}], "metadata": {{}}, )"
      R"("is_hop_single_tensor_return": false, "name": "cond"}})",
      T::argument("", T::value("b")), true_graph, false_graph, T::value("y"));
}

GraphText branch() {
  GraphText text;
  text.tensor_values.push_back(T::tensor("x", 7, {2, 4}));
  text.inputs.push_back(T::value("x"));
  text.add_node("torch.ops.aten.relu.default", {T::argument("self", T::value("x"))}, "r", 7, {2, 4});
  text.outputs.push_back(T::value("r"));
  return text;
}

TEST(GraphJson, sub_graphs_become_graphs_of_the_component) {
  GraphText text;
  text.add_input("x", 7, {2, 4}).add_input("b", 12, {});
  text.nodes.push_back(cond_node(branch().graph(), branch().graph()));
  text.tensor_values.push_back(T::tensor("y", 7, {2, 4}));
  text.add_output("y");
  Program program = read_ok(text);
  EXPECT_EQ(program.components[0].graphs.size(), 3u);
  EXPECT_TRUE(node_at(program, 0).arguments[1].is<GraphId>());
}

TEST(GraphJson, rejects_sub_graphs_that_nest_too_deeply) {
  std::string graph = branch().graph();
  for (int i = 0; i < 70; ++i) {
    GraphText text;
    text.tensor_values = {T::tensor("x", 7, {2, 4}), T::tensor("b", 12, {}), T::tensor("y", 7, {2, 4})};
    text.inputs = {T::value("x"), T::value("b")};
    text.nodes = {cond_node(graph, branch().graph())};
    text.outputs = {T::value("y")};
    graph = text.graph();
  }
  GraphText entry;
  entry.add_input("x", 7, {2, 4}).add_input("b", 12, {});
  entry.nodes.push_back(cond_node(graph, branch().graph()));
  entry.tensor_values.push_back(T::tensor("y", 7, {2, 4}));
  entry.add_output("y");
  EXPECT_NE(error_of(entry).find("nest deeper than 64"), std::string::npos);
}

TEST(GraphJson, names_every_unknown_op_once) {
  GraphText text;
  std::string metadata =
      R"({"nn_module_stack": "L__self__,,M;L__self__mlp,mlp,pkg.mod.Mlp", "stack_trace": "File \"/a/site-packages/pkg/mod.py\", line 12, in forward\n"})";
  text.add_input("x", 7, {2, 4});
  for (const char* name : {"a", "b", "c"}) {
    text.nodes.push_back(T::node(name[0] == 'c' ? "torch.ops.my.other.default" : "torch.ops.my.op.default",
                                 {T::argument("x", T::value("x"))}, {T::value(name)}, metadata));
    text.tensor_values.push_back(T::tensor(name, 7, {2, 4}));
  }
  Program program;
  Diagnostics diagnostics;
  Result<Component> component = read_test_graph(text.text(), program, &diagnostics);
  ASSERT_FALSE(component.has_value());
  EXPECT_EQ(component.error().code, ErrorCode::kUnsupportedOp);
  ASSERT_EQ(diagnostics.errors.size(), 2u);
  EXPECT_EQ(diagnostics.errors[0].message, "no schema is known for op my.op.default, used by 2 nodes");
  EXPECT_EQ(diagnostics.errors[1].message, "no schema is known for op my.other.default");
  ASSERT_FALSE(diagnostics.errors[0].frames.empty());
  const std::optional<ModelLocation>& where = diagnostics.errors[0].frames[0].where;
  ASSERT_TRUE(where.has_value());
  EXPECT_EQ(where->module_path, "mlp");
  EXPECT_EQ(where->class_name, "Mlp");
  EXPECT_EQ(where->file, "pkg/mod.py");
  EXPECT_EQ(where->line, 12);
}

TEST(GraphJson, rejects_other_schema_versions) {
  GraphText text;
  text.schema_version = R"({"major": 9, "minor": 1})";
  Result<Program> program = read_test_program(text.text());
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, ErrorCode::kUnsupportedVersion);
  EXPECT_NE(program.error().message.find("9.1"), std::string::npos);
  EXPECT_FALSE(program.error().hint.empty());
}

TEST(GraphJson, rejects_names_that_are_not_defined_yet) {
  GraphText text;
  text.add_input("x", 7, {2, 4});
  text.add_node("torch.ops.aten.relu.default", {T::argument("self", T::value("b"))}, "a", 7, {2, 4});
  text.add_node("torch.ops.aten.relu.default", {T::argument("self", T::value("a"))}, "b", 7, {2, 4});
  EXPECT_EQ(error_of(text),
            "graph_module.graph.nodes[0].inputs[0].arg.as_tensor.name: value \"b\" is not defined here: no input or "
            "earlier node has that name");
}

TEST(GraphJson, rejects_names_defined_twice) {
  GraphText text = one_node("torch.ops.aten.relu.default", {T::argument("self", T::value("x"))});
  text.nodes.push_back(text.nodes[0]);
  EXPECT_NE(error_of(text).find("nodes[1].outputs[0].as_tensor.name: value \"y\" is defined twice"), std::string::npos);
}

TEST(GraphJson, rejects_one_name_for_two_results) {
  GraphText text;
  text.add_input("x", 7, {2, 4});
  text.nodes.push_back(T::node("torch.ops.aten.topk.default",
                               {T::argument("self", T::value("x")), T::argument("k", R"({"as_int": 1})")},
                               {T::value("y"), T::value("y")}));
  text.tensor_values.push_back(T::tensor("y", 7, {2, 1}));
  EXPECT_NE(error_of(text).find("defined twice"), std::string::npos);
}

TEST(GraphJson, rejects_values_without_a_type) {
  GraphText text = one_node("torch.ops.aten.relu.default", {T::argument("self", T::value("x"))});
  text.tensor_values.pop_back();
  EXPECT_NE(error_of(text).find("tensor_values has no \"y\""), std::string::npos);
}

TEST(GraphJson, rejects_unknown_arguments) {
  GraphText text = one_node("torch.ops.aten.relu.default", {T::argument("selv", T::value("x"))});
  EXPECT_NE(error_of(text).find("op aten.relu.default has no argument \"selv\""), std::string::npos);
}

TEST(GraphJson, rejects_missing_arguments) {
  GraphText text = one_node("torch.ops.aten.relu.default", {});
  EXPECT_NE(error_of(text).find("needs argument \"self\", which is missing"), std::string::npos);
}

TEST(GraphJson, rejects_arguments_given_twice) {
  GraphText text =
      one_node("torch.ops.aten.relu.default", {T::argument("self", T::value("x")), T::argument("self", T::value("x"))});
  EXPECT_NE(error_of(text).find("given twice"), std::string::npos);
}

TEST(GraphJson, rejects_arguments_of_another_kind) {
  GraphText text = one_node("torch.ops.aten.relu.default", {T::argument("self", R"({"as_string": "x"})")});
  EXPECT_NE(error_of(text).find("\"as_string\" does not fit the schema's type Tensor"), std::string::npos);
}

TEST(GraphJson, rejects_unions_of_two_members) {
  GraphText text = one_node("torch.ops.aten.relu.default", {T::argument("self", R"({"as_int": 1, "as_bool": true})")});
  EXPECT_NE(error_of(text).find("exactly one member"), std::string::npos);
}

TEST(GraphJson, rejects_sizes_that_overflow) {
  GraphText text;
  std::string huge = T::size(int64_t{1} << 40);
  text.tensor_values.push_back(T::tensor("x", 7, {huge, huge}, {huge, T::size(1)}));
  text.add_declared_input("x");
  EXPECT_NE(error_of(text).find("number of elements overflows"), std::string::npos);
}

TEST(GraphJson, rejects_negative_sizes) {
  GraphText text;
  text.tensor_values.push_back(T::tensor("x", 7, {T::size(-1)}, {T::size(1)}));
  text.add_declared_input("x");
  EXPECT_NE(error_of(text).find("sizes[0]: negative size -1"), std::string::npos);
}

TEST(GraphJson, rejects_strides_that_do_not_match_sizes) {
  GraphText text;
  text.tensor_values.push_back(T::tensor("x", 7, {T::size(2)}, {}));
  text.add_declared_input("x");
  EXPECT_NE(error_of(text).find("expected 1 strides"), std::string::npos);
}

TEST(GraphJson, rejects_unknown_dtypes_and_layouts) {
  GraphText text;
  text.add_input("x", 99, {2});
  EXPECT_NE(error_of(text).find("unknown dtype number 99"), std::string::npos);
  std::string sparse = GraphText().add_input("x", 7, {2}).text();
  sparse.replace(sparse.find("\"layout\": 7"), 11, "\"layout\": 1");
  EXPECT_NE(error_of(sparse).find("not strided"), std::string::npos);
}

TEST(GraphJson, rejects_custom_objects_and_tokens) {
  GraphText text;
  text.input_specs.push_back(R"({"custom_obj": {"arg": {"name": "o", "class_fqn": "c"}, "custom_obj_name": "queue"}})");
  EXPECT_NE(error_of(text).find("custom object \"queue\""), std::string::npos);
  text.input_specs = {R"({"token": {"arg": {"name": "t"}}})"};
  EXPECT_NE(error_of(text).find("effect token"), std::string::npos);
}

TEST(GraphJson, rejects_a_signature_that_does_not_match_the_graph) {
  GraphText text;
  text.add_input("x", 7, {2}).add_output("x");
  GraphText fewer = text;
  fewer.input_specs.clear();
  EXPECT_NE(error_of(fewer).find("the graph has 1 inputs, its signature 0"), std::string::npos);
  GraphText other = text;
  other.input_specs[0] = format(R"({{"user_input": {{"arg": {}}}}})", T::value("z"));
  EXPECT_NE(error_of(other).find("the graph calls this input \"x\", its signature \"z\""), std::string::npos);
  GraphText outputs = text;
  outputs.output_specs.clear();
  EXPECT_NE(error_of(outputs).find("the graph has 1 outputs, its signature 0"), std::string::npos);
}

TEST(GraphJson, rejects_mutations_of_unknown_weights) {
  GraphText text;
  text.add_input("x", 7, {2}).add_output("x");
  text.output_specs[0] = R"({"buffer_mutation": {"arg": {"name": "x"}, "buffer_name": "count"}})";
  EXPECT_NE(error_of(text).find("mutates \"count\", which the graph does not have"), std::string::npos);
}

TEST(GraphJson, rejects_empty_ranges) {
  GraphText text;
  text.ranges.push_back(R"("s0": {"min_val": 5, "max_val": 2})");
  EXPECT_NE(error_of(text).find("range_constraints.s0: empty range 5 to 2"), std::string::npos);
}

TEST(GraphJson, rejects_what_is_no_graph) {
  EXPECT_EQ(error_of(std::string("[]")), ": expected an object, found an array");
  EXPECT_EQ(error_of(std::string("{}")), "schema_version.major: missing, expected an integer of 64 bits");
  GraphText text;
  std::string without_nodes = text.text();
  without_nodes.replace(without_nodes.find("\"nodes\": []"), 11, "\"nodes\": 1");
  EXPECT_EQ(error_of(without_nodes), "graph_module.graph.nodes: expected an array, found an integer");
}

TEST(GraphJson, prints_and_parses_back_the_same) {
  GraphText text;
  text.add_input("x", 7, {2, 4}).add_input("b", 12, {});
  text.nodes.push_back(cond_node(branch().graph(), branch().graph()));
  text.tensor_values.push_back(T::tensor("y", 7, {2, 4}));
  text.add_output("y");
  Program program = read_ok(text);
  Result<Program> parsed = parse(print(program));
  ASSERT_TRUE(parsed.has_value()) << to_text(parsed.error());
  EXPECT_EQ(difference(program, *parsed), std::nullopt);
}

}  // namespace
}  // namespace argosy
