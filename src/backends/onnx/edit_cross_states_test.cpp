#include "backends/onnx/edit_cross_states.h"

#include <gtest/gtest.h>

#include "backends/onnx/edit.h"
#include "io/test_folder.h"

namespace argosy::onnx {
namespace {

TensorSourcePtr weight() { return literal(std::vector<std::byte>(64), DType::kF32, {4, 4}).value(); }

Ref value(Model& model, const char* name, std::vector<Dim> shape, DType dtype = DType::kF32) {
  return add_value(model, {name, dtype, std::move(shape)});
}

/// hidden = Gather(table, ids); key = Reshape(MatMul(hidden, w), [size of ids at 1, 4]).
Model encoder(bool reads_ids = false) {
  Model model;
  model.graphs.resize(1);
  Ref ids = value(model, "ids", {"batch", "text"}, DType::kI64),
      table = value(model, "table", {int64_t{4}, int64_t{4}});
  Ref hidden = value(model, "hidden", {"batch", "text", int64_t{4}}), w = value(model, "w", {int64_t{4}, int64_t{4}});
  Ref product = value(model, "", {"batch", "text", int64_t{4}}),
      key = value(model, "cross.0.key", {"", "", int64_t{4}});
  Ref size = value(model, "", {int64_t{1}}, DType::kI64), shape = value(model, "", {int64_t{2}}, DType::kI64);
  model.initializers = {{table, weight()}, {w, weight()}};
  Graph& graph = model.graphs[0];
  graph.inputs = {ids};
  graph.outputs = {hidden, key};
  graph.nodes = {{"Gather", "", {table, ids}, {hidden}},
                 {"MatMul", "", {hidden, w}, {product}},
                 {"Shape", "", {ids}, {size}, {{"start", int64_t{1}}, {"end", int64_t{2}}}},
                 {"Concat", "", {size, add_ints(model, {4})}, {shape}, {{"axis", int64_t{0}}}},
                 {"Reshape", "", {product, shape}, {key}}};
  if (reads_ids) graph.nodes[1] = {"Add", "", {hidden, ids}, {product}};
  return model;
}

/// y = Neg(key).
Model decoder() {
  Model model;
  model.graphs.resize(1);
  Ref key = value(model, "past.0.key", {"batch", int64_t{2}, int64_t{9}, int64_t{4}});
  Ref hidden = value(model, "states", {"batch", "text", int64_t{4}}), y = value(model, "y", {"batch"});
  model.graphs[0].inputs = {hidden, key};
  model.graphs[0].outputs = {y};
  model.graphs[0].nodes = {{"Neg", "", {key}, {y}}};
  return model;
}

const std::vector<CrossState> kStates = {{"cross.0.key", "past.0.key", "present.0.key"}};

TEST(CrossStates, are_computed_from_hidden_states_when_none_are_given) {
  Model model = decoder();
  ASSERT_TRUE(compute_cross_states(model, encoder(), "hidden", "states", kStates));
  const std::vector<Node>& root = model.graphs[0].nodes;
  ASSERT_EQ(root.size(), 4u);  // length, comparison, choice, and what was there
  ASSERT_EQ(root[2].op, "If");
  Ref chosen = root[2].outputs[0];
  EXPECT_EQ(root[3].inputs[0], chosen);
  EXPECT_EQ(find_output(model, "present.0.key"), chosen);
  Ref given = find_input(model, "past.0.key");
  EXPECT_EQ(root[0].inputs[0], given);
  EXPECT_TRUE(std::holds_alternative<std::string>((*model[given].shape)[2])) << "empty for callers at first";

  const Graph& compute = model.graphs[std::get<uint32_t>(root[2].attributes[0].value)];
  std::vector<std::string> ops;
  for (const Node& node : compute.nodes) ops.push_back(node.op);
  EXPECT_EQ(ops, (std::vector<std::string>{"MatMul", "Shape", "Concat", "Reshape"}));
  Ref hidden = find_input(model, "states");
  EXPECT_EQ(compute.nodes[0].inputs[0], hidden);
  EXPECT_EQ(compute.nodes[1].inputs[0], hidden) << "the size that the ids had";
  EXPECT_EQ(std::get<int64_t>(compute.nodes[1].attributes[0].value), 1);
  bool has_weight = false;
  for (const Initializer& each : model.initializers) has_weight |= model[each.value].name == "w";
  EXPECT_TRUE(has_weight);
  const Graph& pass = model.graphs[std::get<uint32_t>(root[2].attributes[1].value)];
  EXPECT_EQ(pass.nodes[0].inputs[0], given);
}

TEST(CrossStates, rejects_what_needs_more_than_hidden_states) {
  Model model = decoder();
  expect_error(compute_cross_states(model, encoder(true), "hidden", "states", kStates), ErrorCode::kUnsupportedFeature,
               "\"ids\"");
}

TEST(CrossStates, rejects_names_that_are_not_there) {
  Model model = decoder();
  EXPECT_FALSE(compute_cross_states(model, encoder(), "hiden", "states", kStates));
  EXPECT_FALSE(compute_cross_states(model, encoder(), "hidden", "hidden", kStates));
  EXPECT_FALSE(compute_cross_states(model, encoder(), "hidden", "states", {}));
}

}  // namespace
}  // namespace argosy::onnx
