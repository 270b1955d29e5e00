#include "engines/genai/genai.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "engines/device.h"
#include "engines/engine.h"
#include "io/test_folder.h"

namespace argosy::engines {
namespace {

/// A state of a layer, as captures describe it.
std::string state(const std::string& part, const std::string& dims) {
  return format(R"({{"name": "s_{}", "path": "past_key_values.{}", "dtype": "f32", "dims": {}}})", part, part, dims);
}

/// A capture's manifest of a text decoder with these states.
std::string manifest(const std::vector<std::pair<std::string, std::string>>& states, const std::string& more = "") {
  std::string inputs, cache;
  for (const auto& [part, dims] : states) {
    inputs += ", " + state(part, dims);
    cache +=
        format(R"({}{{"path": "past_key_values.{}", "output": "present.{}"}})", cache.empty() ? "" : ", ", part, part);
  }
  return format(
      R"({{"model_class": "TinyForCausalLM", "task": "", "configuration": {{"model_type": "tiny", "eos_token_id": 1}},
    "components": [{{"name": "decode", "inputs": [{{"name": "input_ids", "dtype": "i64", "dims": ["batch", "sequence"]}}{}{}],
    "outputs": [{{"name": "logits", "dtype": "f32", "dims": [null, null, 64]}}],
    "cache": {{"states": [{}]}}}}]}})",
      inputs, more, cache);
}

struct Planned {
  std::string error;
  BundlePlan plan;
  JsonDocument config = JsonDocument::parse("{}", "none").value();
};

Planned plan(const std::string& text, const std::filesystem::path& folder = "") {
  Planned planned;
  JsonDocument document = JsonDocument::parse(text, "capture.json").value();
  auto model = read_source_model(folder, document.root());
  EXPECT_TRUE(model.has_value()) << model.error().message;
  auto made = plan_genai(*model);
  if (!made) {
    planned.error = made.error().message;
    return planned;
  }
  planned.plan = *made;
  planned.config = JsonDocument::parse(made->files[0].text, "genai_config.json").value();
  return planned;
}

const std::vector<std::pair<std::string, std::string>> kTwoLayers = {
    {"0.key", R"(["batch", 2, "past_sequence", 8])"},
    {"0.value", R"(["batch", 2, "past_sequence", 8])"},
    {"1.key", R"(["batch", 2, "past_sequence", 8])"},
    {"1.value", R"(["batch", 2, "past_sequence", 8])"}};

TEST(Genai, caches_share_their_buffers_where_the_engines_attention_continues_all_of_them) {
  JsonDocument document = JsonDocument::parse(manifest(kTwoLayers), "capture.json").value();
  SourceModel model = read_source_model("", document.root()).value();
  for (size_t kept : {0, 3, 4}) {
    BundlePlan plan = plan_genai(model).value();
    ASSERT_TRUE(finish_genai(model, {{"model.onnx", 1, kept}}, plan));
    JsonDocument config = JsonDocument::parse(plan.files[0].text, "genai_config.json").value();
    EXPECT_EQ(config.root().find("search").find("past_present_share_buffer").as_bool(), kept == 4) << kept;
  }
}

TEST(Genai, names_the_provider_of_a_device) {
  JsonDocument document = JsonDocument::parse(manifest(kTwoLayers), "capture.json").value();
  SourceModel model = read_source_model("", document.root()).value();
  for (const Device& device : all_devices()) {
    model.device = &device;
    BundlePlan plan = plan_genai(model).value();
    ASSERT_TRUE(finish_genai(model, {{"model.onnx", 1, 4}}, plan));
    JsonDocument config = JsonDocument::parse(plan.files[0].text, "genai_config.json").value();
    JsonView root = config.root();
    EXPECT_EQ(root.find("search").find("past_present_share_buffer").as_bool(), device.shares_caches) << device.name;
    JsonView options = root.find("model").find("decoder").find("session_options").find("provider_options");
    ASSERT_EQ(options.size(), device.provider.empty() ? 0 : 1) << device.name;
    for (JsonView each : options.items()) {
      for (const auto& [key, value] : device.provider_options)
        EXPECT_EQ(each.find(device.provider).find(key).as_string(), value) << device.name;
    }
  }
}

TEST(Genai, describes_a_decoder_by_its_own_ports) {
  Planned planned = plan(manifest(kTwoLayers));
  ASSERT_EQ(planned.error, "");
  JsonView model = planned.config.root().find("model");
  EXPECT_EQ(model.find("type").as_string(), "decoder");
  EXPECT_EQ(model.find("vocab_size").as_integer(), 64);
  EXPECT_EQ(model.find("decoder").find("head_size").as_integer(), 8);
  EXPECT_EQ(model.find("decoder").find("num_key_value_heads").as_integer(), 2);
  EXPECT_EQ(model.find("decoder").find("num_hidden_layers").as_integer(), 2);
  EXPECT_FALSE(model.find("decoder").find("inputs").find("position_ids").is_valid());
  EXPECT_EQ(planned.config.root().find("search").find("past_present_share_buffer").as_bool(), false);
  ASSERT_EQ(planned.plan.graphs.size(), 1u);
  EXPECT_EQ(planned.plan.graphs[0].file, "model.onnx");
  EXPECT_TRUE(planned.plan.graphs[0].edits.empty());
}

TEST(Genai, keeps_types_that_the_engine_treats_as_any_decoder) {
  TestFolder folder;
  folder.write("llama/config.json", R"({"model_type": "llama", "max_position_embeddings": 77, "eos_token_id": 5})");
  folder.write("llama/generation_config.json", R"({"eos_token_id": [2, 3], "temperature": 0.5})");
  Planned planned = plan(manifest(kTwoLayers), folder / "llama");
  JsonView model = planned.config.root().find("model");
  EXPECT_EQ(model.find("type").as_string(), "llama");
  EXPECT_EQ(model.find("context_length").as_integer(), 77);
  EXPECT_EQ(model.find("eos_token_id").size(), 2u);  // those of the generation settings
  EXPECT_EQ(model.find("pad_token_id").as_integer(), 2);
  EXPECT_EQ(planned.config.root().find("search").find("temperature").as_double(), 0.5);
  // This one wants keys and values in one tensor.
  folder.write("gpt2/config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ(plan(manifest(kTwoLayers), folder / "gpt2").config.root().find("model").find("type").as_string(),
            "decoder");
}

TEST(Genai, writes_contexts_within_the_limits_of_the_graph) {
  TestFolder folder;
  folder.write("llama/config.json", R"({"model_type": "llama", "max_position_embeddings": 77, "eos_token_id": 5})");
  auto planned = [&](std::string_view limits) {
    std::string text = manifest(kTwoLayers);
    text.insert(text.find("\"cache\""), limits);
    Planned result = plan(text, folder / "llama");
    EXPECT_EQ(result.error, "");
    return result;
  };
  auto context = [](const Planned& made) {
    EXPECT_EQ(made.config.root().find("search").find("max_length").as_integer(),
              made.config.root().find("model").find("context_length").as_integer());
    return made.config.root().find("model").find("context_length").as_integer();
  };
  EXPECT_EQ(context(planned(R"("dims": {"total_sequence": {"min": 1, "max": 64}}, )")), 64);
  EXPECT_EQ(context(planned(R"("dims": {"total_sequence": {"min": 1, "max": 640}}, )")), 77);
  EXPECT_EQ(context(planned(R"("dims": {"total_sequence": {"min": 1, "max": null}}, )")), 77);
  EXPECT_EQ(context(planned(R"("guards": [{"condition": "a or b", "where": "", "longest": 24}], )")), 24);
  EXPECT_EQ(context(planned(R"("guards": [{"condition": "sequence <= 7", "where": "x.py:3"}], )")), 77);
}

TEST(Genai, limits_are_told_with_the_line_that_they_come_from) {
  std::string text = manifest(kTwoLayers);
  text.insert(text.find("\"cache\""), R"("guards": [{"condition": "total_sequence <= 64", "where": "x.py:3"},
                                           {"condition": "sequence <= 7", "where": ""}], )");
  JsonDocument document = JsonDocument::parse(text, "capture.json").value();
  EXPECT_EQ(limit_lines(document.root()),
            (std::vector<std::string>{"decode is right where total_sequence <= 64 (x.py:3)",
                                      "decode is right where sequence <= 7"}));
}

TEST(Genai, widens_values_that_are_narrower_than_keys) {
  Planned planned =
      plan(manifest({{"0.key", R"(["batch", 2, "past", 12])"}, {"0.value", R"(["batch", 2, "past", 8])"}}));
  ASSERT_EQ(planned.plan.graphs[0].edits.size(), 1u);
  const auto& edit = std::get<WidenState>(planned.plan.graphs[0].edits[0]);
  EXPECT_EQ(edit.input, "past_key_values.0.value");
  EXPECT_EQ(edit.size, 12);
}

TEST(Genai, tells_layers_of_convolutions_from_those_of_attention) {
  Planned planned = plan(manifest({{"0.conv_states.0", R"(["batch", 16, 3])"},
                                   {"1.key", R"(["batch", 2, "past", 8])"},
                                   {"1.value", R"(["batch", 2, "past", 8])"}}));
  ASSERT_EQ(planned.error, "");
  JsonView decoder = planned.config.root().find("model").find("decoder");
  EXPECT_EQ(planned.config.root().find("model").find("type").as_string(), "lfm2");
  EXPECT_EQ(decoder.find("layer_types").size(), 2u);
  EXPECT_EQ(decoder.find("conv_cache_size").as_integer(), 3);
}

TEST(Genai, postpones_states_that_share_memory) {
  Planned planned =
      plan(manifest({{"0.conv_states.0", R"(["batch", 16, 3])"}, {"0.recurrent_states.0", R"(["batch", 4, 16, 8])"}}));
  ASSERT_EQ(planned.error, "");
  EXPECT_EQ(planned.config.root().find("model").find("type").as_string(), "decoder");
  const std::vector<Edit>& edits = planned.plan.graphs[0].edits;
  ASSERT_EQ(edits.size(), 6u);
  EXPECT_EQ(std::get<PostponeOutput>(edits[3]).output, "present.0.recurrent_states.0");
  EXPECT_EQ(std::get<RenameInput>(edits[4]).to, "past_key_values.0.recurrent_state");
  ASSERT_EQ(planned.plan.notes.size(), 1u);
  EXPECT_NE(planned.plan.notes[0].find("take for text"), std::string::npos);
}

TEST(Genai, says_what_the_engine_takes_for_the_end) {
  TestFolder folder;
  folder.write("endless/config.json", R"({"model_type": "tiny"})");
  EXPECT_TRUE(plan(manifest(kTwoLayers)).plan.notes.empty());
  ASSERT_EQ(plan(manifest(kTwoLayers), folder / "endless").plan.notes.size(), 1u);
}

TEST(Genai, refuses_caches_that_the_engine_cannot_carry) {
  EXPECT_NE(plan(manifest({})).error.find("it has none"), std::string::npos);
  Planned planned = plan(manifest({{"0.key", R"(["batch", "past", 8])"}, {"0.value", R"(["batch", "past", 8])"}}));
  EXPECT_NE(planned.error.find("[batch, past, 8], not [batch, heads, past, size]"), std::string::npos) << planned.error;
  planned = plan(manifest({{"0.conv_states.0", R"(["batch", 16, 3])"}, {"0.conv_states.1", R"(["batch", 16, 3])"}}));
  EXPECT_NE(planned.error.find("layer 0 has conv_states, conv_states.1"), std::string::npos) << planned.error;
  planned =
      plan(manifest(kTwoLayers, R"(, {"name": "mm_token_type_ids", "dtype": "i64", "dims": ["batch", "sequence"]})"));
  EXPECT_NE(planned.error.find("mm_token_type_ids"), std::string::npos) << planned.error;
}

TEST(Genai, refuses_models_that_do_not_generate) {
  Planned planned = plan(R"({"model_class": "Encoder", "configuration": {}, "components": [{"name": "model"}]})");
  EXPECT_NE(planned.error.find("consists of model"), std::string::npos);
}

}  // namespace
}  // namespace argosy::engines
