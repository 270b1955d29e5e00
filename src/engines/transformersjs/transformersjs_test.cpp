#include "engines/transformersjs/transformersjs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "engines/optimum/optimum.h"
#include "engines/rewrite_json.h"

namespace argosy::engines {
namespace {

std::string ports(const std::vector<std::pair<std::string, std::string>>& list) {
  std::string text;
  for (const auto& [name, dims] : list) {
    std::string dtype = name.ends_with("ids") || name.ends_with("mask") ? "i64" : "f32";
    text += format(R"({}{{"name": "{}", "dtype": "{}", "dims": {}}})", text.empty() ? "" : ", ", name, dtype, dims);
  }
  return text;
}

struct Component {
  std::string name;
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
  std::vector<std::string> states;  // what follows "past_key_values."
};

SourceModel source(const std::string& config, const std::vector<Component>& components,
                   const std::string& model_class = "TinyForCausalLM") {
  std::string list;
  for (Component each : components) {
    std::string cache;
    for (const std::string& state : each.states) {
      each.inputs.emplace_back("past_key_values." + state, R"(["batch", 2, "past_sequence", 8])");
      cache += format(R"({}{{"path": "past_key_values.{}", "output": "present.{}"}})", cache.empty() ? "" : ", ", state,
                      state);
    }
    list += format(R"({}{{"name": "{}", "inputs": [{}], "outputs": [{}], "cache": {{"states": [{}]}}}})",
                   list.empty() ? "" : ", ", each.name, ports(each.inputs), ports(each.outputs), cache);
  }
  std::string text = format(R"({{"model_class": "{}", "task": "", "configuration": {}, "components": [{}]}})",
                            model_class, config, list);
  JsonDocument document = JsonDocument::parse(text, "capture.json").value();
  return read_source_model("", document.root()).value();
}

const Component kDecode = {"decode",
                           {{"input_ids", R"(["batch", "sequence"])"}},
                           {{"logits", R"([null, null, 64])"}},
                           {"0.key", "0.value", "1.key", "1.value"}};

/// config.json as it is written when each graph has one data file.
JsonDocument config_of(const SourceModel& model, BundlePlan plan) {
  std::vector<WrittenGraph> graphs;
  for (const GraphPlan& graph : plan.graphs) graphs.push_back({graph.file, 1});
  EXPECT_TRUE(finish_transformersjs(model, graphs, plan));
  return JsonDocument::parse(plan.files.back().text, "config.json").value();
}

template <class Kind>
size_t count(const GraphPlan& graph) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.edits, [](const Edit& edit) { return std::holds_alternative<Kind>(edit); }));
}

TEST(TransformersJs, keeps_the_type_of_a_decoder_that_it_knows) {
  SourceModel model = source(R"({"model_type": "gpt2", "n_layer": 2})", {kDecode});
  BundlePlan plan = plan_transformersjs(model).value();
  ASSERT_EQ(plan.graphs.size(), 1u);
  EXPECT_EQ(plan.graphs[0].file, "onnx/model.onnx");
  EXPECT_EQ(plan.graphs[0].data_file, "model.onnx_data");
  EXPECT_EQ(count<RenameDim>(plan.graphs[0]), 1u);
  JsonDocument config = config_of(model, plan);
  EXPECT_EQ(config.root().find("model_type").as_string(), "gpt2");
  JsonView section = config.root().find("transformers.js_config");
  EXPECT_EQ(section.find("dtype").as_string(), "fp32");
  EXPECT_EQ(section.find("use_external_data_format").find("model.onnx").as_integer(), 1);
  EXPECT_TRUE(plan.notes.empty());
}

TEST(TransformersJs, calls_an_unknown_decoder_by_the_name_of_one_with_the_same_cache) {
  SourceModel model = source(R"({"model_type": "tiny", "multi_query": true})", {kDecode});
  BundlePlan plan = plan_transformersjs(model).value();
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_NE(plan.notes[0].find("\"tiny\""), std::string::npos);
  JsonDocument config = config_of(model, plan);
  EXPECT_EQ(config.root().find("model_type").as_string(), "llama");
  EXPECT_EQ(config.root().find("num_hidden_layers").as_integer(), 2);
  EXPECT_EQ(config.root().find("multi_query").as_bool(), false);
  EXPECT_EQ(config.root().find("transformers.js_config").find("argosy_model_type").as_string(), "tiny");
}

TEST(TransformersJs, names_states_of_convolutions) {
  Component decode = kDecode;
  decode.states = {"0.conv_states", "1.key", "1.value"};
  BundlePlan plan = plan_transformersjs(source(R"({"model_type": "lfm2"})", {decode})).value();
  const auto& input = std::get<RenameInput>(plan.graphs[0].edits[0]);
  EXPECT_EQ(input.to, "past_conv.0");
  EXPECT_EQ(std::get<RenameOutput>(plan.graphs[0].edits[1]).to, "present_conv.0");
  decode.states = {"0.conv_states.0", "0.recurrent_states.0", "1.key", "1.value"};
  plan = plan_transformersjs(source(R"({"model_type": "falcon_h1"})", {decode})).value();
  EXPECT_EQ(std::get<RenameInput>(plan.graphs[0].edits[0]).to, "past_conv.0");
  EXPECT_EQ(std::get<RenameInput>(plan.graphs[0].edits[2]).to, "past_ssm.0");
  auto refused = plan_transformersjs(source(R"({"model_type": "tiny"})", {decode}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("conv_states"), std::string::npos);
}

TEST(TransformersJs, rejects_inputs_that_it_does_not_feed) {
  Component decode = kDecode;
  decode.inputs.emplace_back("token_type_ids", R"(["batch", "sequence"])");
  auto refused = plan_transformersjs(source(R"({"model_type": "llama"})", {decode}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("token_type_ids"), std::string::npos);
}

std::vector<Component> encoder_and_decoder() {
  Component encoder = {"encoder",
                       {{"input_ids", R"(["batch", "text"])"}, {"attention_mask", R"(["batch", "text"])"}},
                       {{"last_hidden_state", "[null, null, 16]"},
                        {"cross.0.key", "[null, 2, null, 8]"},
                        {"cross.0.value", "[null, 2, null, 8]"}},
                       {}};
  Component decoder = {"decoder",
                       {{"decoder_input_ids", R"(["batch", "sequence"])"},
                        {"attention_mask", R"(["batch", "text"])"},
                        {"encoder_hidden_states", R"(["batch", "text", 16])"},
                        {"past_key_values.0.encoder.key", R"(["batch", 2, "text", 8])"},
                        {"past_key_values.0.encoder.value", R"(["batch", 2, "text", 8])"}},
                       {{"logits", "[null, null, 64]"}},
                       {"0.decoder.key", "0.decoder.value"}};
  return {encoder, decoder};
}

TEST(TransformersJs, lets_the_decoder_compute_states_of_cross_attention) {
  SourceModel model = source(R"({"model_type": "t5", "num_decoder_layers": 1})", encoder_and_decoder(), "T5");
  BundlePlan plan = plan_transformersjs(model).value();
  ASSERT_EQ(plan.graphs.size(), 2u);
  EXPECT_EQ(plan.graphs[0].file, "onnx/encoder_model.onnx");
  EXPECT_EQ(count<DropOutput>(plan.graphs[0]), 2u);
  EXPECT_EQ(plan.graphs[1].file, "onnx/decoder_model_merged.onnx");
  EXPECT_EQ(plan.graphs[1].data_file, "decoder_model_merged.onnx_data");
  EXPECT_EQ(count<ComputeCrossStates>(plan.graphs[1]), 1u);
  EXPECT_EQ(std::get<RenameInput>(plan.graphs[1].edits[1]).to, "encoder_attention_mask");
  EXPECT_EQ(config_of(model, plan).root().find("is_encoder_decoder").as_bool(), true);
}

TEST(Optimum, orders_states_by_layer_and_shares_one_data_file) {
  BundlePlan plan = plan_optimum(source(R"({"model_type": "t5"})", encoder_and_decoder(), "T5")).value();
  ASSERT_EQ(plan.graphs.size(), 2u);
  EXPECT_EQ(plan.graphs[0].data_file, plan.graphs[1].data_file);
  EXPECT_EQ(count<AcceptEmptyState>(plan.graphs[1]), 4u);
  EXPECT_EQ(std::get<OrderInputs>(plan.graphs[1].edits.back()).names,
            (std::vector<std::string>{"past_key_values.0.decoder.key", "past_key_values.0.decoder.value",
                                      "past_key_values.0.encoder.key", "past_key_values.0.encoder.value"}));
}

TEST(RewriteJson, changes_adds_and_removes_members) {
  JsonDocument document = JsonDocument::parse(R"({"a": 1, "b": {"c": [1, 2]}, "d": "x"})", "text").value();
  JsonChange changes[] = {{{"a"}, nullptr}, {{"b", "e"}, int64_t{3}}, {{"f", "g"}, true}, {{"d"}, std::string("y")}};
  JsonDocument made = JsonDocument::parse(rewritten(document.root(), changes), "made").value();
  EXPECT_FALSE(made.root().find("a").is_valid());
  EXPECT_EQ(made.root().find("b").find("c").size(), 2u);
  EXPECT_EQ(made.root().find("b").find("e").as_integer(), 3);
  EXPECT_EQ(made.root().find("f").find("g").as_bool(), true);
  EXPECT_EQ(made.root().find("d").as_string(), "y");
}

}  // namespace
}  // namespace argosy::engines
