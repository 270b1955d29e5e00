#include "engines/lint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engines/engine.h"
#include "engines/genai/lint_config.h"
#include "engines/lint_cache.h"
#include "engines/lint_rule.h"
#include "engines/transformersjs/lint_tables.h"
#include "io/test_folder.h"

namespace argosy::engines {
namespace {

JsonDocument parse(std::string_view text) {
  auto document = JsonDocument::parse(text, "test");
  if (!document) throw std::runtime_error(document.error().message);
  return *std::move(document);
}

std::set<std::string> rules_found(const TestFolder& folder, std::string_view engine = "") {
  auto report = lint(folder.path(), engine);
  if (!report) throw std::runtime_error(report.error().message);
  std::set<std::string> rules;
  for (const Finding& finding : report->findings) rules.insert(finding.rule);
  return rules;
}

std::string engine_of(const TestFolder& folder) { return lint(folder.path())->engine; }

TEST(Lint, recognises_engines_by_their_files) {
  TestFolder folder;
  EXPECT_EQ(engine_of(folder), "plain");
  folder.write("config.json", "{}");
  EXPECT_EQ(engine_of(folder), "plain");
  folder.write("model.onnx", "");
  EXPECT_EQ(engine_of(folder), "optimum");
  folder.write("onnx/model.onnx", "");
  EXPECT_EQ(engine_of(folder), "transformersjs");
  folder.write("genai_config.json", "{}");
  EXPECT_EQ(engine_of(folder), "genai");
  folder.write("bundle.json", R"({"engine": "plain"})");
  EXPECT_EQ(engine_of(folder), "plain");
  folder.write("bundle.json", R"({"engine": "nobody's"})");
  EXPECT_EQ(engine_of(folder), "genai");
}

TEST(Lint, rejects_folders_that_are_not_there) {
  TestFolder folder;
  expect_error(lint(folder / "none"), ErrorCode::kNotFound, "there is no folder");
  folder.write("file", "");
  expect_error(lint(folder / "file"), ErrorCode::kNotFound, "there is no folder");
  expect_error(lint(folder.path(), "nobody"), ErrorCode::kInvalidInput, "there is no engine");
}

TEST(Lint, names_of_rules_differ_and_all_say_what_to_do) {
  std::set<std::string> names;
  for (const LintRuleInfo& rule : lint_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_FALSE(rule.what.empty()) << rule.name;
    EXPECT_EQ(rule.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << rule.name;
  }
}

TEST(Lint, survives_files_of_any_content) {
  // Every file that is looked into holds every kind of value, for every engine.
  std::string deep(5000, '[');
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("7"), deep, std::string("\xff\xfe"),
        std::string(R"({"model": 3, "search": [], "model_type": {}, "architectures": "x"})"),
        std::string(R"({"model": {"type": [], "decoder": 1, "eos_token_id": {}, "vocab_size": "x"}})"),
        std::string(R"({"model": {"vocab": [[], 1, ["a", 2]]}, "added_tokens": [{}, 1, {"id": 1e300}]})"),
        std::string(R"({"model": {"vocab": {"a": -5, "b": 9223372036854775807}}, "added_tokens": 3})"),
        std::string(R"({"transformers.js_config": {"use_external_data_format": 1e18, "dtype": []}})"),
        std::string(R"({"graphs": [{"file": "../x"}, 1], "files": [[], "/etc/passwd"], "wiring": [{"from": "."}]})"),
        std::string(
            R"({"text_config": {"num_hidden_layers": 9e18, "layer_types": [1, {}]}, "model_type": "llama"})")}) {
    TestFolder folder;
    for (const char* file :
         {"config.json", "genai_config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
          "bundle.json", "processor_config.json", "model.onnx", "onnx/model.onnx", "decoder_model_merged.onnx"})
      folder.write(file, text);
    for (const Engine& engine : all_engines())
      EXPECT_TRUE(rules_found(folder, engine.name).contains("graph-unreadable"));
  }
}

TEST(Lint, survives_things_that_are_no_files) {
  TestFolder folder;
  std::filesystem::create_directories(folder / "config.json");
  std::filesystem::create_directories(folder / "model.onnx");
  std::filesystem::create_symlink(folder / "loop.onnx", folder / "loop.onnx");
  std::filesystem::create_directory_symlink(folder.path(), folder / "again");
  std::filesystem::create_symlink("/dev/zero", folder / "tokenizer.json");
  std::set<std::string> rules = rules_found(folder);
  EXPECT_TRUE(rules.contains("graph-unreadable"));
  EXPECT_TRUE(rules.contains("link-outside"));
}

TEST(Lint, findings_are_one_line_of_utf8) {
  TestFolder folder;
  folder.write("a\n\xff\x1b[31m.onnx", "nothing");
  auto report = lint(folder.path());
  ASSERT_TRUE(report.has_value());
  ASSERT_FALSE(report->findings.empty());
  for (const Finding& finding : report->findings) {
    for (const std::string& text : {finding.file, finding.what, finding.hint}) {
      EXPECT_TRUE(is_utf8(text));
      EXPECT_TRUE(std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
          << text;
    }
  }
}

TEST(LintVocabulary, knows_ids_of_all_kinds_of_tokenizers) {
  JsonDocument bpe = parse(R"({"model": {"vocab": {"a": 0, "b": 5}}, "added_tokens": [{"id": 7, "content": "</s>"}]})");
  LintedVocabulary words(bpe.root());
  EXPECT_EQ(words.size(), 8);
  EXPECT_TRUE(words.has(5));
  EXPECT_FALSE(words.has(6));
  EXPECT_FALSE(words.has(-1));
  EXPECT_FALSE(words.has(8));
  EXPECT_EQ(words.id_of("</s>"), 7);
  EXPECT_EQ(words.id_of("b"), 5);
  EXPECT_EQ(words.id_of("c"), std::nullopt);
  JsonDocument unigram = parse(R"({"model": {"vocab": [["<unk>", 0.0], ["x", -1.5]]}})");
  EXPECT_EQ(LintedVocabulary(unigram.root()).size(), 2);
  EXPECT_EQ(LintedVocabulary(unigram.root()).id_of("x"), 1);
  JsonDocument none = parse("{}");
  EXPECT_TRUE(LintedVocabulary(none.root()).is_empty());
}

TEST(LintCache, reads_names_of_states) {
  LintedGraph graph;
  graph.model.emplace();
  for (const char* name : {"past_key_values.12.key", "past_key_values.3.decoder.value", "past_key_values.3.encoder.key",
                           "past_key_cross_1", "past_sequence_length", "input_ids", "past_key_values_0_key"})
    graph.model->inputs.push_back({name, "f32", {}, false});
  std::vector<CachePort> ports = cache_inputs(graph);
  ASSERT_EQ(ports.size(), 5u);
  EXPECT_EQ(ports[0].layer, 12);
  EXPECT_TRUE(ports[0].is_key());
  EXPECT_TRUE(ports[1].is_value());
  EXPECT_FALSE(ports[1].is_cross());
  EXPECT_TRUE(ports[2].is_cross());
  EXPECT_TRUE(ports[3].is_cross());
  EXPECT_EQ(ports[4].layer, 0);
  EXPECT_EQ(present_name("past_key_values.0.key"), "present.0.key");
  EXPECT_EQ(present_name("past_conv.2"), "present_conv.2");
}

TEST(LintGenai, knows_types_and_keys) {
  EXPECT_EQ(genai::model_kind("llama"), genai::ModelKind::kText);
  EXPECT_EQ(genai::model_kind("gemma3"), genai::ModelKind::kVision);
  EXPECT_EQ(genai::model_kind("mixtral"), std::nullopt);
  EXPECT_EQ(genai::model_kind(""), std::nullopt);
  JsonDocument config = parse(R"({"note": 1, "extra": {}, "model": {"eos_token_id": [2], "bos_token_id": null,
                                  "decoder": {"inputs": {"tokens": "x"}}}, "search": {"top_k": 5}})");
  std::vector<std::string> paths;
  for (const auto& [path, problem] : genai::refused_keys(config.root())) paths.push_back(path);
  EXPECT_EQ(paths, (std::vector<std::string>{"extra", "model.bos_token_id", "model.decoder.inputs.tokens"}));
}

TEST(LintTransformersjs, knows_graphs_caches_and_data) {
  using namespace transformersjs;
  JsonDocument t5 =
      parse(R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "num_decoder_layers": 2})");
  EXPECT_EQ(sessions(t5.root()), (std::vector<std::string>{"encoder_model", "decoder_model_merged"}));
  EXPECT_EQ(cache_names(t5.root()).names.size(), 8u);
  JsonDocument llava = parse(R"({"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"],
                                 "text_config": {"model_type": "llama", "num_hidden_layers": 3}})");
  EXPECT_EQ(sessions(llava.root()).size(), 3u);
  EXPECT_TRUE(cache_names(llava.root()).names.contains("past_key_values.2.value"));
  JsonDocument other = parse(R"({"model_type": "lla", "architectures": [1, "LlaForCausalLM"]})");
  EXPECT_EQ(sessions(other.root()), std::vector<std::string>{"model"});
  EXPECT_FALSE(cache_names(other.root()).is_known);
  JsonDocument detection = parse(R"({"architectures": ["DetrForObjectDetection"], "is_encoder_decoder": true})");
  EXPECT_EQ(sessions(detection.root()), std::vector<std::string>{"model"});
  JsonDocument unknown = parse(R"({"architectures": ["NewForConditionalGeneration"], "is_encoder_decoder": true})");
  EXPECT_EQ(sessions(unknown.root()).size(), 2u);
  JsonDocument data =
      parse(R"({"transformers.js_config": {"use_external_data_format": {"model_q4.onnx": 3, "model": true}}})");
  EXPECT_EQ(declared_chunks(data.root(), "model_q4.onnx", "model"), 3);
  EXPECT_EQ(declared_chunks(data.root(), "model_fp16.onnx", "model"), 1);
  EXPECT_EQ(declared_chunks(data.root(), "vision_encoder.onnx", "vision_encoder"), 0);
}

}  // namespace
}  // namespace argosy::engines
