#include "engines/lint.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "io/test_folder.h"

namespace argosy::engines {
namespace {

using Method = LintedProgram::Method;

/// A program that a runner of language models takes.
LintedProgram good_program() {
  LintedProgram program;
  program.methods = {
      {"forward", {{"i64", {1, 64}}, {"i64", {64}}}, {{"f32", {1, 1, 8}}}, {}, {"aten::embedding.out"}},
      {"get_max_seq_len", {}, {{}}, {int64_t{64}}, {}},
      {"get_max_context_len", {}, {{}}, {int64_t{64}}, {}},
      {"get_eos_ids", {}, {{}, {}}, {int64_t{2}, int64_t{3}}, {}},
      {"use_kv_cache", {}, {{}}, {true}, {}},
  };
  return program;
}

void fill(const TestFolder& folder) {
  folder.write("model.pte", "");
  folder.write("config.json", R"({"model_type": "llama", "vocab_size": 8, "eos_token_id": [2, 3]})");
  folder.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 7}}})");
}

std::set<std::string> found_in(const TestFolder& folder, const LintedProgram& program) {
  auto report = lint(folder.path(), "executorch", [&](const std::filesystem::path&) { return program; });
  if (!report) throw std::runtime_error(report.error().message);
  std::set<std::string> rules;
  for (const Finding& finding : report->findings) {
    if (finding.rule.starts_with("executorch-")) rules.insert(finding.rule);
  }
  return rules;
}

/// The rules that speak up when a good program is spoiled.
std::set<std::string> found_after(const std::function<void(LintedProgram&)>& spoil) {
  TestFolder folder;
  fill(folder);
  LintedProgram program = good_program();
  spoil(program);
  return found_in(folder, program);
}

Method& method(LintedProgram& program, std::string_view name) {
  for (Method& each : program.methods) {
    if (each.name == name) return each;
  }
  throw std::runtime_error("no such method");
}

using Rules = std::set<std::string>;

TEST(LintExecutorch, finds_nothing_in_a_good_program) {
  EXPECT_EQ(found_after([](LintedProgram&) {}), Rules());
}

TEST(LintExecutorch, recognises_folders_by_their_program) {
  TestFolder folder;
  fill(folder);
  EXPECT_EQ(lint(folder.path())->engine, "executorch");
}

TEST(LintExecutorch, reports_a_missing_program) {
  TestFolder folder;
  folder.write("other.pte", "");
  folder.write("tokenizer.json", "{}");
  EXPECT_EQ(found_in(folder, good_program()), Rules({"executorch-program-missing"}));
}

TEST(LintExecutorch, reports_a_program_that_cannot_be_read) {
  EXPECT_EQ(found_after([](LintedProgram& program) { program.problem = "it is none"; }),
            Rules({"executorch-program-unreadable"}));
}

TEST(LintExecutorch, reports_missing_data) {
  auto spoil = [](LintedProgram& program) { program.external_data = {"model.weight"}; };
  EXPECT_EQ(found_after(spoil), Rules({"executorch-data-missing"}));
  TestFolder folder;
  fill(folder);
  folder.write("model.ptd", "");
  LintedProgram program = good_program();
  spoil(program);
  EXPECT_EQ(found_in(folder, program), Rules());
}

TEST(LintExecutorch, reports_a_program_without_an_entry) {
  EXPECT_EQ(found_after([](LintedProgram& program) { method(program, "forward").name = "decode"; }),
            Rules({"executorch-entry-missing"}));
}

TEST(LintExecutorch, reports_a_missing_length) {
  EXPECT_EQ(found_after([](LintedProgram& program) { method(program, "get_max_seq_len").name = "max_seq_len"; }),
            Rules({"executorch-length-missing"}));
}

TEST(LintExecutorch, reports_lengths_that_do_not_fit) {
  EXPECT_EQ(found_after([](LintedProgram& program) {
              method(program, "get_max_seq_len").constants = {int64_t{128}};
              method(program, "get_max_context_len").constants = {int64_t{128}};
            }),
            Rules({"executorch-length"}));
  EXPECT_EQ(
      found_after([](LintedProgram& program) { method(program, "get_max_context_len").constants = {int64_t{32}}; }),
      Rules({"executorch-length"}));
}

TEST(LintExecutorch, reports_positions_of_another_kind) {
  EXPECT_EQ(found_after([](LintedProgram& program) { method(program, "forward").inputs[1] = {"i32", {64}}; }),
            Rules({"executorch-positions"}));
}

TEST(LintExecutorch, reports_outputs_besides_logits) {
  EXPECT_EQ(found_after(
                [](LintedProgram& program) { method(program, "forward").outputs.push_back({"f32", {1, 4, 64, 16}}); }),
            Rules({"executorch-outputs"}));
}

TEST(LintExecutorch, reports_a_cache_that_is_not_there) {
  EXPECT_EQ(found_after([](LintedProgram& program) { method(program, "forward").inputs.pop_back(); }),
            Rules({"executorch-cache-flag"}));
}

TEST(LintExecutorch, reports_media_without_a_decoder) {
  EXPECT_EQ(found_after([](LintedProgram& program) {
              program.methods.push_back({"vision_encoder", {{"f32", {1, 3, 8, 8}}}, {{"f32", {1, 4, 8}}}, {}, {}});
            }),
            Rules({"executorch-multimodal"}));
}

TEST(LintExecutorch, reports_a_missing_tokenizer) {
  TestFolder folder;
  folder.write("model.pte", "");
  EXPECT_EQ(found_in(folder, good_program()), Rules({"executorch-tokenizer-missing"}));
}

TEST(LintExecutorch, reports_more_tokens_than_logits) {
  EXPECT_EQ(found_after([](LintedProgram& program) { method(program, "forward").outputs[0].sizes = {1, 1, 7}; }),
            Rules({"executorch-vocabulary"}));
}

TEST(LintExecutorch, reports_ends_that_are_not_known) {
  EXPECT_EQ(found_after([](LintedProgram& program) { method(program, "get_eos_ids").constants = {int64_t{2}}; }),
            Rules({"executorch-end"}));
}

}  // namespace
}  // namespace argosy::engines
