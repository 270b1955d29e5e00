#include "engines/card.h"

#include <gtest/gtest.h>

#include "engines/card_head.h"
#include "engines/pipeline_task.h"
#include "io/test_folder.h"

namespace argosy::engines {
namespace {

using Values = std::vector<std::string>;

constexpr std::string_view kSnapshot = "models--org--name/snapshots/abc123/";

/// The card of a bundle for ONNX Runtime GenAI, of a decoder with this card of its own.
std::string card_of(const std::string& own_card, std::string_view place = kSnapshot,
                    const Values& options = {"--for=genai", "--dtype=float16"}) {
  TestFolder folder;
  std::string at(place);
  folder.write(at + "config.json", "{}");
  if (!own_card.empty()) folder.write(at + "README.md", own_card);
  constexpr std::string_view kManifest =
      R"({"model_class": "LlamaForCausalLM", "components": [{"name": "decode"}], "configuration": {}})";
  JsonDocument document = JsonDocument::parse(kManifest, "capture.json").value();
  SourceModel model = read_source_model(folder / at, document.root()).value();
  model.options = options;
  BundlePlan plan;
  plan.notes = {"a note of the plan"};
  return model_card(model, *find_engine("genai"), plan, {"1.2", "none", {"a note"}}).value();
}

/// What is between the first two fences.
std::string head_of(const std::string& card) { return card.substr(0, card.find("\n---\n", 4) + 5); }

TEST(Card, has_what_the_hub_lists_models_by) {
  std::string card = card_of("---\nlicense: mit\ntags:\n- x\nlicense_link: there\nlanguage:\n- en\n- no\n---\n# Own\n");
  EXPECT_EQ(head_of(card),
            "---\nlibrary_name: onnxruntime-genai\npipeline_tag: text-generation\nbase_model: org/name\nlicense: mit\n"
            "license_link: there\nlanguage:\n- en\n- \"no\"\ntags:\n- onnx\n- argosy\n- genai\n---\n");
}

TEST(Card, tells_origin_options_and_version) {
  std::string card = card_of("");
  EXPECT_NE(card.find("`LlamaForCausalLM` of [org/name](https://huggingface.co/org/name), commit `abc123`, exported by "
                      "argosy 1.2 with `--for=genai --dtype=float16`. Check: none."),
            std::string::npos)
      << card;
  EXPECT_NE(card.find("came without its card"), std::string::npos);
  EXPECT_NE(card.find("- a note of the plan\n- a note\n"), std::string::npos);
  EXPECT_EQ(card.find("model's own card"), std::string::npos);
  EXPECT_EQ(card_of("", "folder/", {}).find(" with `"), std::string::npos);
}

TEST(Card, keeps_the_models_own_card_below) {
  std::string card = card_of("---\nlicense: mit\n---\n# Own title\n\nlicense: fake\n\n---\ntext after a line");
  size_t own = card.find("## The model's own card");
  ASSERT_NE(own, std::string::npos);
  EXPECT_LT(card.find("- a note\n"), own);
  EXPECT_TRUE(card.ends_with("---\n\n# Own title\n\nlicense: fake\n\n---\ntext after a line\n")) << card;
  EXPECT_EQ(head_of(card).find("fake"), std::string::npos);
  EXPECT_NE(card_of("# No head\n").find("states no licence"), std::string::npos);
  EXPECT_NE(card_of("\xff\xfe").find("is left out: it is no UTF-8"), std::string::npos);
}

TEST(Card, takes_the_base_of_a_model_that_is_not_the_hubs) {
  EXPECT_NE(head_of(card_of("---\nbase_model: org/base\n---\n", "folder/")).find("base_model: org/base\n"),
            std::string::npos);
  EXPECT_EQ(head_of(card_of("---\nbase_model: ../base\n---\n", "folder/")).find("base_model"), std::string::npos);
  EXPECT_NE(head_of(card_of("---\nbase_model: org/base\n---\n")).find("base_model: org/name\n"), std::string::npos);
}

TEST(Card, takes_the_publishers_word_for_what_a_model_is_for) {
  EXPECT_NE(card_of("---\npipeline_tag: sentence-similarity\n---\n").find("pipeline_tag: sentence-similarity\n"),
            std::string::npos);
  EXPECT_NE(card_of("---\npipeline_tag: mind-reading\n---\n").find("pipeline_tag: text-generation\n"),
            std::string::npos);
}

/// What a hostile head adds to ours.
TEST(Card, hostile_heads_are_data) {
  const std::string usual = head_of(card_of("# no head"));
  for (std::string line :
       {"license: &a [*a]", "license: !!python/object/apply:os.system [ls]", "license: {a: b}", "license: \"open",
        "license: 'open", "license: |\n  text", "license: >-\n  text", "license: a\n  b: c", "license: a: b",
        "license: *alias", "license: \"a\\n---\\nb\"", "license: x\x01y", "license:\n- {a: b}", "license:\n  a: b",
        "license: [a, {b: c}]", "license: [a", "license:mit", " license: mit", "? license\n: mit"}) {
    EXPECT_EQ(head_of(card_of("---\n" + line + "\n---\nbody")), usual) << line;
  }
  EXPECT_EQ(head_of(card_of("---\nlicense: mit\nno end")), usual);
  EXPECT_EQ(head_of(card_of("---\nlicense: " + std::string(1000, 'a') + "\n---\n")), usual);
}

TEST(CardHead, reads_values_and_lists) {
  SourceCard card = read_source_card(
      "\xEF\xBB\xBF---\r\nlicense: \"mit\"  \r\n# comment\r\nlanguage: [en, 'de']\r\ntags:\r\n\r\n  - a b # c\r\n  - "
      "d\r\n"
      "model-index:\r\n- name: x\r\n  results: []\r\nname: it's #1\r\n---\r\nbody");
  EXPECT_EQ(card.values("license"), Values{"mit"});
  EXPECT_EQ(card.values("language"), (Values{"en", "de"}));
  EXPECT_EQ(card.values("tags"), (Values{"a b", "d"}));
  EXPECT_EQ(card.values("name"), Values{"it's"});
  EXPECT_EQ(card.values("model-index"), Values{});
  EXPECT_EQ(card.body, "body");
  EXPECT_EQ(read_source_card("").body, "");
}

TEST(CardHead, writes_what_yaml_reads_back) {
  EXPECT_EQ(yaml_scalar("apache-2.0"), "apache-2.0");
  EXPECT_EQ(yaml_scalar("no"), "\"no\"");
  EXPECT_EQ(yaml_scalar("1.0"), "\"1.0\"");
  EXPECT_EQ(yaml_scalar("a: b"), "\"a: b\"");
  EXPECT_EQ(yaml_scalar("say \"x\""), "\"say \\\"x\\\"\"");
  EXPECT_EQ(yaml_entry("key", {}), "");
  EXPECT_EQ(yaml_entry("key", {"a", "NULL"}), "key:\n- a\n- \"NULL\"\n");
}

std::string_view task_of(std::string_view manifest) {
  JsonDocument document = JsonDocument::parse(manifest, "capture.json").value();
  return pipeline_task(read_source_model({}, document.root()).value());
}

TEST(PipelineTask, follows_class_and_ports) {
  EXPECT_EQ(task_of(R"({"model_class": "BertForMaskedLM", "components": [{"name": "model"}], "configuration": {}})"),
            "fill-mask");
  EXPECT_EQ(task_of(R"({"model_class": "XForConditionalGeneration", "configuration": {}, "components": [
      {"name": "encoder", "inputs": [{"name": "input_features"}]}, {"name": "decoder"}]})"),
            "automatic-speech-recognition");
  EXPECT_EQ(task_of(R"({"model_class": "XForConditionalGeneration", "configuration": {}, "components": [
      {"name": "image_encoder"}, {"name": "embedding"}, {"name": "decode"}]})"),
            "image-text-to-text");
  EXPECT_EQ(task_of(R"({"model_class": "ViTModel", "configuration": {}, "components": [
      {"name": "model", "inputs": [{"name": "pixel_values"}]}]})"),
            "image-feature-extraction");
  EXPECT_EQ(task_of(R"({"model_class": "XForOddThings", "components": [{"name": "model"}], "configuration": {}})"), "");
}

}  // namespace
}  // namespace argosy::engines
