#include "backends/onnx/edit_inputs.h"

#include <gtest/gtest.h>

#include "backends/onnx/edit.h"
#include "backends/onnx/edit_token_embedding.h"
#include "io/test_folder.h"

namespace argosy::onnx {
namespace {

Ref value(Model& model, const char* name, std::vector<Dim> shape, DType dtype = DType::kF32) {
  return add_value(model, {name, dtype, std::move(shape)});
}

/// y = Neg(past), z = Neg(mask).
Model two_inputs() {
  Model model;
  model.graphs.resize(1);
  Ref past = value(model, "past", {"batch", int64_t{2}, "past", int64_t{8}});
  Ref mask = value(model, "mask", {"batch"}, DType::kI64);
  Ref y = value(model, "y", {"batch", int64_t{2}, "past", int64_t{8}}), z = value(model, "z", {"batch"}, DType::kI64);
  model.graphs[0].inputs = {past, mask};
  model.graphs[0].outputs = {y, z};
  model.graphs[0].nodes = {{"Neg", "", {past}, {y}}, {"Neg", "", {mask}, {z}}};
  return model;
}

TEST(EditInputs, renames_a_dim_everywhere) {
  Model model = two_inputs();
  ASSERT_TRUE(rename_dim(model, "batch", "batch_size"));
  EXPECT_EQ((*model[find_input(model, "past")].shape)[0], Dim("batch_size"));
  EXPECT_EQ((*model[find_output(model, "z")].shape)[0], Dim("batch_size"));
  EXPECT_FALSE(rename_dim(model, "past", "batch_size"));
  EXPECT_TRUE(rename_dim(model, "none", "other"));
}

TEST(EditInputs, puts_inputs_last_in_an_order) {
  Model model = two_inputs();
  std::string names[] = {"past"};
  ASSERT_TRUE(order_inputs(model, names));
  EXPECT_EQ(model[model.graphs[0].inputs[1]].name, "past");
  std::string missing[] = {"other"};
  EXPECT_FALSE(order_inputs(model, missing));
}

TEST(EditInputs, casts_what_callers_give) {
  Model model = two_inputs();
  ASSERT_TRUE(cast_input(model, "mask", "bool"));
  Ref mask = find_input(model, "mask");
  EXPECT_EQ(model[mask].dtype, DType::kBool);
  const Node& cast = model.graphs[0].nodes.front();
  EXPECT_EQ(cast.op, "Cast");
  EXPECT_EQ(cast.inputs[0], mask);
  EXPECT_EQ(model[cast.outputs[0]].dtype, DType::kI64);
  EXPECT_FALSE(cast_input(model, "mask", "no type"));
}

TEST(EditInputs, an_input_that_is_one_everywhere_goes) {
  Model model = two_inputs();
  ASSERT_TRUE(assume_ones(model, "mask", "past"));
  EXPECT_EQ(model.graphs[0].inputs.size(), 1u);
  const std::vector<Node>& nodes = model.graphs[0].nodes;
  EXPECT_EQ(nodes[0].inputs[0], find_input(model, "past"));
  EXPECT_EQ(nodes[1].op, "ConstantOfShape");
  EXPECT_EQ(nodes[1].outputs[0], nodes[3].inputs[0]);
  EXPECT_FALSE(assume_ones(model, "past", "past")) << "only masks of integers";
}

TEST(EditInputs, an_empty_state_may_have_any_sizes) {
  Model model = two_inputs();
  ASSERT_TRUE(accept_empty_state(model, "past", 2));
  const std::vector<Dim>& shape = *model[find_input(model, "past")].shape;
  EXPECT_EQ(shape, (std::vector<Dim>{"batch", "", "past", ""}));
  const std::vector<Node>& nodes = model.graphs[0].nodes;
  ASSERT_EQ(nodes.size(), 6u);
  EXPECT_EQ(nodes[3].op, "Reshape");
  EXPECT_EQ(nodes[3].outputs[0], nodes[4].inputs[0]);
  EXPECT_FALSE(accept_empty_state(model, "past", 4));
}

/// embeds = Where(is_place, Gather(features, where), Gather(table, ids)), in the order of Where's operands or turned.
Model merging(const char* op) {
  Model model;
  model.graphs.resize(1);
  Ref ids = value(model, "ids", {"batch", "text"}, DType::kI64), features = value(model, "features", {"n", int64_t{4}});
  Ref table = value(model, "table", {int64_t{9}, int64_t{4}}), text = value(model, "", {"batch", "text", int64_t{4}});
  Ref place = value(model, "", {"batch", "text"}, DType::kBool),
      taken = value(model, "", {"batch", "text", int64_t{4}});
  Ref embeds = value(model, "embeds", {"batch", "text", int64_t{4}});
  model.initializers = {{table, literal(std::vector<std::byte>(144), DType::kF32, {9, 4}).value()}};
  Graph& graph = model.graphs[0];
  graph.inputs = {ids, features};
  graph.outputs = {embeds};
  graph.nodes = {{"Gather", "", {table, ids}, {text}},
                 {"Equal", "", {ids, ids}, {place}},
                 {"Gather", "", {features, ids}, {taken}},
                 {op, "", {place, taken, text}, {embeds}}};
  return model;
}

TEST(TokenEmbedding, is_what_is_left_without_features) {
  Model model = merging("Where");
  std::string features[] = {"features"};
  ASSERT_TRUE(drop_features(model, features));
  ASSERT_EQ(model.graphs[0].nodes.size(), 1u);
  EXPECT_EQ(model.graphs[0].nodes[0].op, "Gather");
  EXPECT_EQ(model.graphs[0].inputs.size(), 1u);
  EXPECT_EQ(model.graphs[0].nodes[0].outputs[0], find_output(model, "embeds"));
}

TEST(TokenEmbedding, places_may_depend_on_the_number_of_features) {
  Model model = merging("Where");
  model.graphs[0].nodes[1] = {
      "Equal", "", {model.graphs[0].inputs[1], model.graphs[0].inputs[1]}, {model.graphs[0].nodes[1].outputs[0]}};
  std::string features[] = {"features"};
  ASSERT_TRUE(drop_features(model, features));
  EXPECT_EQ(model.graphs[0].nodes.size(), 1u);
}

TEST(TokenEmbedding, rejects_other_uses_of_features) {
  Model model = merging("Sum");
  std::string features[] = {"features"};
  expect_error(drop_features(model, features), ErrorCode::kUnsupportedFeature, "\"embeds\"");
}

}  // namespace
}  // namespace argosy::onnx
