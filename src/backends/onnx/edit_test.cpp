#include "backends/onnx/edit.h"

#include <gtest/gtest.h>

namespace argosy::onnx {
namespace {

/// present = Concat(past, x), y = Neg(x); and an Abs that only `extra` needs.
Model growing() {
  Model model;
  model.graphs.resize(1);
  auto value = [&](const char* name, std::vector<Dim> shape) { return add_value(model, {name, DType::kF32, shape}); };
  Ref past = value("past", {"batch", "past", 4}), x = value("x", {"batch", "sequence", 4});
  Ref present = value("present", {"batch", "", 4}), y = value("y", {"batch", "sequence", 4});
  Ref extra = value("extra", {"batch", "sequence", 4});
  Graph& graph = model.graphs[0];
  graph.inputs = {past, x};
  graph.outputs = {present, y, extra};
  graph.nodes = {
      {"Concat", "", {past, x}, {present}, {{"axis", int64_t{1}}}}, {"Neg", "", {x}, {y}}, {"Abs", "", {x}, {extra}}};
  return model;
}

std::vector<std::string> ops(const Model& model) {
  std::vector<std::string> names;
  for (const Node& node : model.graphs[0].nodes) names.push_back(node.op);
  return names;
}

TEST(Edit, renames_what_callers_see) {
  Model model = growing();
  ASSERT_TRUE(rename_input(model, "past", "old"));
  ASSERT_TRUE(rename_output(model, "present", "new"));
  EXPECT_TRUE(find_input(model, "old").is_valid());
  EXPECT_FALSE(find_input(model, "past").is_valid());
  EXPECT_TRUE(find_output(model, "new").is_valid());
  Status taken = rename_output(model, "new", "x");
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("has that name already"), std::string::npos);
  Status missing = rename_input(model, "past", "a");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().hint, "it has old, x");
}

TEST(Edit, drops_an_output_with_what_computes_it) {
  Model model = growing();
  ASSERT_TRUE(drop_output(model, "extra"));
  EXPECT_EQ(ops(model), (std::vector<std::string>{"Concat", "Neg"}));
  EXPECT_FALSE(drop_output(model, "extra"));
}

TEST(Edit, widens_a_state_for_callers) {
  Model model = growing();
  ASSERT_TRUE(widen_state(model, "past", "present", 6));
  EXPECT_EQ(ops(model), (std::vector<std::string>{"Slice", "Concat", "Neg", "Abs", "Pad"}));
  EXPECT_EQ(std::get<int64_t>(model[find_input(model, "past")].shape->back()), 6);
  EXPECT_EQ(std::get<int64_t>(model[find_output(model, "present")].shape->back()), 6);
  const Graph& graph = model.graphs[0];
  EXPECT_EQ(graph.nodes.front().inputs[0], find_input(model, "past"));
  EXPECT_EQ(graph.nodes.front().outputs[0], graph.nodes[1].inputs[0]);
  EXPECT_EQ(graph.nodes.back().outputs[0], find_output(model, "present"));
  EXPECT_FALSE(widen_state(model, "past", "present", 2));
}

TEST(Edit, postpones_an_output_until_another_is_known) {
  Model model = growing();
  ASSERT_FALSE(postpone_output(model, "present", "y"));  // two sizes vary
  model[find_output(model, "present")].shape = std::vector<Dim>{"batch", int64_t{3}, int64_t{4}};
  ASSERT_TRUE(postpone_output(model, "present", "y"));
  EXPECT_EQ(ops(model), (std::vector<std::string>{"Concat", "Neg", "Abs", "Shape", "Concat", "Reshape"}));
  EXPECT_EQ(model.graphs[0].nodes.back().outputs[0], find_output(model, "present"));
  EXPECT_EQ(model.graphs[0].nodes[3].inputs[0], find_output(model, "y"));
}

}  // namespace
}  // namespace argosy::onnx
