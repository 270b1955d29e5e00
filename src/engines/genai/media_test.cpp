#include <gtest/gtest.h>

#include "base/text.h"
#include "engines/genai/genai.h"
#include "engines/genai/processor.h"
#include "io/test_folder.h"

namespace argosy::engines {
namespace {

struct Ports {
  std::string inputs, outputs;
};

std::string port(const std::string& name, const std::string& dims) {
  return format(R"({{"name": "{}", "path": "{}", "dtype": "f32", "dims": {}}})", name, name, dims);
}

std::string component(const std::string& name, const Ports& ports, const std::string& states = "") {
  return format(R"({{"name": "{}", "inputs": [{}], "outputs": [{}], "cache": {{"states": [{}]}}}})", name, ports.inputs,
                ports.outputs, states);
}

/// Where a model differs from the usual.
struct Model {
  std::string type = "llava", config = R"("image_token_id": 9, "mm_tokens_per_image": 256)";
  std::string encoder_inputs = port("pixel_values", R"(["batch", 3, 8, 8])");
  std::string encoder_more;  // outputs
  std::string decode_more;   // inputs
  std::string positions = R"(["batch", "sequence"])";
};

std::string manifest(const Model& model) {
  std::string key = port("past_key_values.0.key", R"(["batch", 2, "past", 8])");
  std::string value = port("past_key_values.0.value", R"(["batch", 2, "past", 8])");
  Ports decode{port("inputs_embeds", R"(["batch", "sequence", 16])") + ", " +
                   port("attention_mask", R"(["batch", "total"])") + ", " + port("position_ids", model.positions) +
                   model.decode_more + ", " + key + ", " + value,
               port("logits", "[null, null, 64]")};
  std::string states = R"({"path": "past_key_values.0.key", "output": "present.0.key"},
                          {"path": "past_key_values.0.value", "output": "present.0.value"})";
  Ports embedding{port("input_ids", R"(["batch", "sequence"])") + ", " + port("image_features", R"(["tokens", 16])"),
                  port("inputs_embeds", "[null, null, 16]")};
  Ports encoder{model.encoder_inputs, port("image_features", "[null, 16]") + model.encoder_more};
  return format(
      R"({{"model_class": "Tiny", "task": "", "configuration": {{"model_type": "{}", {}}}, "components": [{}, {}, {}]}})",
      model.type, model.config, component("image_encoder", encoder), component("embedding", embedding),
      component("decode", decode, states));
}

Result<BundlePlan> plan(const std::string& text, const std::filesystem::path& folder = "") {
  JsonDocument document = JsonDocument::parse(text, "capture.json").value();
  auto model = read_source_model(folder, document.root());
  EXPECT_TRUE(model.has_value()) << model.error().message;
  return plan_genai(*model);
}

std::string refusal(const Model& model) {
  auto made = plan(manifest(model));
  return made ? "" : made.error().message;
}

JsonDocument config(const BundlePlan& plan) {
  return JsonDocument::parse(plan.files[0].text, "genai_config.json").value();
}

TEST(GenaiMedia, runs_any_encoder_of_pictures_with_given_pixels) {
  auto made = plan(manifest({}));
  ASSERT_TRUE(made.has_value()) << made.error().message;
  JsonDocument written = config(*made);
  JsonView model = written.root().find("model");
  EXPECT_EQ(model.find("type").as_string(), "gemma3");
  EXPECT_EQ(model.find("image_token_id").as_integer(), 9);
  EXPECT_EQ(model.find("vision").find("filename").as_string(), "vision.onnx");
  EXPECT_EQ(made->files.size(), 1u);  // no processor
  EXPECT_NE(made->usage.find(R"(for name in ["pixel_values"])"), std::string::npos) << made->usage;
  EXPECT_EQ(made->graphs.size(), 3u);
}

TEST(GenaiMedia, gives_gemma3_the_engines_processor) {
  TestFolder folder;
  Model gemma{.type = "gemma3", .decode_more = ", " + port("token_type_ids", R"(["batch", "total"])")};
  folder.write("m/config.json", format(R"({{"model_type": "gemma3", {}}})", gemma.config));
  folder.write("m/preprocessor_config.json", R"({"size": {"height": 896, "width": 896}, "resample": 3})");
  auto made = plan(manifest(gemma), folder / "m");
  ASSERT_TRUE(made.has_value()) << made.error().message;
  ASSERT_EQ(made->files.size(), 2u);
  EXPECT_EQ(made->files[1].name, genai::kImageProcessorFile);
  EXPECT_NE(made->files[1].text.find("\"interpolation\": \"CUBIC\""), std::string::npos);
  const auto& types = std::get<ComputeTokenTypes>(made->graphs[0].edits.at(0));
  EXPECT_EQ(types.media_token, 9);
  // Another number of tokens, or crops: the engine's processor does not do.
  folder.write("m/config.json", R"({"model_type": "gemma3", "image_token_id": 9, "mm_tokens_per_image": 64})");
  EXPECT_EQ(plan(manifest(gemma), folder / "m")->files.size(), 1u);
  folder.write("n/config.json", format(R"({{"model_type": "gemma3", "eos_token_id": 1, {}}})", gemma.config));
  folder.write("n/preprocessor_config.json", R"({"size": {"height": 896, "width": 896}, "do_pan_and_scan": true})");
  made = plan(manifest(gemma), folder / "n");
  EXPECT_EQ(made->files.size(), 1u);
  ASSERT_EQ(made->notes.size(), 1u);
  EXPECT_NE(made->notes[0].find("crops"), std::string::npos) << made->notes[0];
}

TEST(GenaiMedia, computes_grids_of_qwens_patches) {
  TestFolder folder;
  folder.write("m/config.json", R"({"model_type": "qwen2_5_vl", "image_token_id": 9, "vision_start_token_id": 8,
    "vision_config": {"patch_size": 14, "spatial_merge_size": 2, "window_size": 112}})");
  folder.write("m/preprocessor_config.json", R"({"min_pixels": 100, "max_pixels": 1000})");
  Model qwen{.type = "qwen2_5_vl",
             .encoder_inputs = port("pixel_values", R"(["patches", 96])") + ", " + port("window_index", R"(["n"])"),
             .positions = R"([3, "batch", "sequence"])"};
  auto made = plan(manifest(qwen), folder / "m");
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const auto& edit = std::get<ComputePatchPositions>(made->graphs[2].edits.at(0));
  EXPECT_EQ(edit.window, 4);
  EXPECT_EQ(edit.merge_size, 2);
  JsonDocument written = config(*made);
  EXPECT_EQ(written.root().find("model").find("vision_start_token_id").as_integer(), 8);
  EXPECT_NE(made->files[1].text.find("\"max_pixels\": 1000"), std::string::npos);
  // Without settings for pictures transformers is left to prepare them.
  folder.write("n/config.json", R"({"model_type": "qwen2_5_vl", "image_token_id": 9,
    "vision_config": {"patch_size": 14, "spatial_merge_size": 2, "window_size": 112}})");
  auto bare = plan(manifest(qwen), folder / "n");
  ASSERT_TRUE(bare.has_value()) << bare.error().message;
  EXPECT_EQ(bare->files.size(), 1u);
  EXPECT_NE(bare->usage.find(R"(["pixel_values", "image_grid_thw"])"), std::string::npos) << bare->usage;
  qwen.encoder_inputs += ", " + port("target_sizes", R"(["patches", 4])");
  EXPECT_NE(plan(manifest(qwen), folder / "m").error().message.find("target_sizes"), std::string::npos);
}

TEST(GenaiMedia, refuses_what_the_engine_does_not_hand_over) {
  EXPECT_NE(refusal({.encoder_more = ", " + port("deepstack.0", "[null, 16]")}).find("more than features"),
            std::string::npos);
  EXPECT_NE(refusal({.positions = R"([3, "batch", "sequence"])"}).find("positions"), std::string::npos);
  EXPECT_NE(refusal({.decode_more = ", " + port("visual_masks", R"(["batch"])")}).find("visual_masks"),
            std::string::npos);
  EXPECT_NE(refusal({.encoder_inputs = port("pack_index", R"(["n"])")}).find("pack_index"), std::string::npos);
  EXPECT_NE(refusal({.config = R"("a": 1)"}).find("which token"), std::string::npos);
}

std::string whisper(int frames, const std::string& more = "") {
  std::string inputs = port("decoder_input_ids", R"(["batch", "sequence"])") + ", " +
                       port("encoder_hidden_states", R"(["batch", 1500, 16])");
  std::string outputs = port("logits", "[null, null, 64]"), cross = port("last_hidden_state", "[null, 1500, 16]"),
              states;
  for (std::string part : {"key", "value"}) {
    inputs += ", " + port("past_key_values.0.decoder." + part, R"(["batch", 2, "past", 8])");
    inputs += ", " + port("past_key_values.0.encoder." + part, R"(["batch", 2, 1500, 8])");
    outputs += ", " + port("present.0.decoder." + part, R"([null, 2, null, 8])");
    cross += ", " + port("cross.0." + part, R"([null, 2, 1500, 8])");
    states += format(R"({}{{"path": "past_key_values.0.decoder.{}", "output": "present.0.decoder.{}"}})",
                     states.empty() ? "" : ", ", part, part);
  }
  Ports encoder{port("input_features", format(R"(["batch", 80, {}])", frames)), cross};
  return format(
      R"({{"model_class": "Tiny", "task": "", "configuration": {{"model_type": "whisper"}}, "components": [{}, {}]}})",
      component("encoder", encoder), component("decoder", {inputs + more, outputs}, states));
}

TEST(GenaiMedia, names_whispers_states_for_the_engine) {
  auto made = plan(whisper(3000));
  ASSERT_TRUE(made.has_value()) << made.error().message;
  JsonDocument written = config(*made);
  JsonView model = written.root().find("model");
  EXPECT_EQ(model.find("type").as_string(), "whisper");
  EXPECT_EQ(model.find("encoder").find("hidden_size").as_integer(), 16);
  EXPECT_EQ(model.find("decoder").find("num_hidden_layers").as_integer(), 1);
  EXPECT_EQ(model.find("decoder").find("inputs").find("cross_past_key_names").as_string(),
            "past_key_values.%d.encoder.key");
  EXPECT_EQ(std::get<DropInput>(made->graphs[1].edits.at(0)).name, "encoder_hidden_states");
  EXPECT_NE(made->files[1].text.find("\"n_mel\": 80"), std::string::npos);
  EXPECT_NE(plan(whisper(256)).error().message.find("spectrograms of 256 frames"), std::string::npos);
  EXPECT_NE(plan(whisper(3000, ", " + port("mask", R"(["batch"])"))).error().message.find("given mask"),
            std::string::npos);
}

}  // namespace
}  // namespace argosy::engines
