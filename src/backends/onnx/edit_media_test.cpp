#include "backends/onnx/edit_media.h"

#include <gtest/gtest.h>

#include "backends/onnx/edit.h"
#include "backends/onnx/edit_features.h"

namespace argosy::onnx {
namespace {

/// features = Concat of what the inputs are used for; `unused` by nothing.
Model model_with(const std::vector<std::pair<std::string, DType>>& inputs) {
  Model model;
  model.graphs.resize(1);
  Graph& graph = model.graphs[0];
  for (const auto& [name, dtype] : inputs) {
    Ref input = add_value(model, {name, dtype, std::vector<Dim>{"batch", "total"}});
    Ref copy = add_value(model, {name + "_copy", dtype, std::nullopt});
    graph.inputs.push_back(input);
    graph.nodes.push_back({"Identity", "", {input}, {copy}});
    graph.outputs.push_back(copy);
  }
  graph.inputs.push_back(add_value(model, {"unused", DType::kF32, std::vector<Dim>{1}}));
  return model;
}

std::vector<std::string> input_names(const Model& model) {
  std::vector<std::string> names;
  for (Ref ref : model.graphs[0].inputs) names.push_back(model[ref].name);
  return names;
}

/// Every value is made before it is read.
bool is_ordered(const Model& model) {
  std::vector<bool> made(model.values.size());
  for (Ref ref : model.graphs[0].inputs) made[ref.index] = true;
  for (const Initializer& each : model.initializers) made[each.value.index] = true;
  for (const Node& node : model.graphs[0].nodes) {
    for (Ref ref : node.inputs) {
      if (!made[ref.index]) return false;
    }
    for (Ref ref : node.outputs) made[ref.index] = true;
  }
  return true;
}

TEST(EditMedia, drops_inputs_that_nothing_reads) {
  Model model = model_with({{"x", DType::kF32}});
  ASSERT_TRUE(drop_input(model, "unused"));
  EXPECT_EQ(input_names(model), (std::vector<std::string>{"x"}));
  Status read = drop_input(model, "x");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("the graph reads it"), std::string::npos);
  EXPECT_FALSE(drop_input(model, "y"));
}

TEST(EditMedia, computes_token_types_from_ids) {
  for (std::optional<int64_t> token : {std::optional<int64_t>(7), std::optional<int64_t>()}) {
    Model model = model_with({{"token_type_ids", DType::kI64}, {"attention_mask", DType::kI64}});
    ASSERT_TRUE(compute_token_types(model, "token_type_ids", {"attention_mask", "input_ids", token}));
    EXPECT_EQ(input_names(model), (std::vector<std::string>{"attention_mask", "unused", "input_ids"}));
    EXPECT_TRUE(is_ordered(model));
  }
  Model model = model_with({{"token_type_ids", DType::kI64}});
  EXPECT_FALSE(compute_token_types(model, "token_type_ids", {"attention_mask", "input_ids", 7}));
}

TEST(EditMedia, computes_positions_of_patches_from_a_grid) {
  Model model = model_with({{"pixel_values", DType::kF32},
                            {"position_ids", DType::kI64},
                            {"cu_seqlens", DType::kI32},
                            {"window_index", DType::kI64},
                            {"cu_window_seqlens", DType::kI32},
                            {"interpolation_indices", DType::kI64},
                            {"interpolation_weights", DType::kF32}});
  EXPECT_FALSE(compute_patch_positions(model, "grid", {2, 0, 8}));  // windows of no size
  EXPECT_FALSE(compute_patch_positions(model, "grid", {2, 4, 0}));  // a table without positions
  EXPECT_FALSE(compute_patch_positions(model, "pixel_values", {2, 4, 8}));
  ASSERT_TRUE(compute_patch_positions(model, "grid", {2, 4, 8}));
  EXPECT_EQ(input_names(model), (std::vector<std::string>{"pixel_values", "unused", "grid"}));
  EXPECT_TRUE(is_ordered(model));
}

TEST(EditMedia, groups_rows_for_callers) {
  Model model;
  model.graphs.resize(1);
  Ref in = add_value(model, {"in", DType::kF32, std::vector<Dim>{"rows", 8}});
  Ref out = add_value(model, {"out", DType::kF32, std::vector<Dim>{"", 8}});
  model.graphs[0].inputs = {in};
  model.graphs[0].outputs = {out};
  model.graphs[0].nodes = {{"Neg", "", {in}, {out}}};
  EXPECT_FALSE(group_rows(model, "out", 0));
  ASSERT_TRUE(group_rows(model, "out", 4));
  EXPECT_EQ(*model[find_output(model, "out")].shape, (std::vector<Dim>{"", int64_t{4}, int64_t{8}}));
  ASSERT_TRUE(accept_grouped_rows(model, "in"));
  EXPECT_FALSE(model[find_input(model, "in")].shape.has_value());
  EXPECT_TRUE(is_ordered(model));
  EXPECT_FALSE(accept_grouped_rows(model, "in"));  // its rows are no longer of a fixed size
}

/// Every output is the input of its place.
Model passing(const std::vector<std::pair<std::string, std::vector<Dim>>>& inputs,
              const std::vector<std::string>& outputs) {
  Model model;
  model.graphs.resize(1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Ref in = add_value(model, {inputs[i].first, DType::kF32, inputs[i].second});
    Ref out = add_value(model, {outputs[i], DType::kF32, inputs[i].second});
    model.graphs[0].inputs.push_back(in);
    model.graphs[0].outputs.push_back(out);
    model.graphs[0].nodes.push_back({"Identity", "", {in}, {out}});
  }
  return model;
}

int64_t last_dim(const Model& model, Ref value) { return std::get<int64_t>(model[value].shape->back()); }

TEST(EditFeatures, travel_side_by_side) {
  std::vector<Dim> rows = {"n", int64_t{8}}, tokens = {"batch", "sequence", int64_t{8}}, mask = {"batch", "sequence"};
  Model encoder = passing({{"a", rows}, {"b", rows}, {"c", rows}}, {"features", "deep.0", "deep.1"});
  ASSERT_TRUE(join_outputs(encoder, {"features", "deep.0", "deep.1"}));
  EXPECT_EQ(encoder.graphs[0].outputs.size(), 1u);
  EXPECT_EQ(last_dim(encoder, find_output(encoder, "features")), 24);
  EXPECT_TRUE(is_ordered(encoder));
  EXPECT_FALSE(join_outputs(encoder, {"features", "deep.0"}));

  Model embedding = passing({{"ids", tokens}, {"mask_in", mask}, {"features", rows}, {"deep.0", rows}},
                            {"embeds", "mask", "rest", "more.0"});
  ASSERT_TRUE(spread_features(embedding, {"features", {"deep.0"}, "embeds", "mask", {"more.0"}}));
  EXPECT_EQ(input_names(embedding), (std::vector<std::string>{"ids", "mask_in", "features"}));
  EXPECT_EQ(last_dim(embedding, find_input(embedding, "features")), 16);
  EXPECT_EQ(last_dim(embedding, find_output(embedding, "embeds")), 16);
  EXPECT_FALSE(find_output(embedding, "mask").is_valid());
  EXPECT_TRUE(is_ordered(embedding));

  Model decoder = passing({{"embeds", tokens}, {"mask", mask}, {"more.0", rows}}, {"x", "y", "z"});
  EXPECT_FALSE(take_spread_features(decoder, "embeds", "mask", {"more.1"}));
  ASSERT_TRUE(take_spread_features(decoder, "embeds", "mask", {"more.0"}));
  EXPECT_EQ(input_names(decoder), (std::vector<std::string>{"embeds"}));
  EXPECT_EQ(last_dim(decoder, find_input(decoder, "embeds")), 16);
  EXPECT_TRUE(is_ordered(decoder));
}

}  // namespace
}  // namespace argosy::onnx
