#include "engines/lint.h"

#include <algorithm>

#include "engines/engine.h"
#include "engines/lint_rule.h"

namespace argosy::engines {
namespace {

namespace fs = std::filesystem;

using RuleList = std::span<const LintRule> (*)();

constexpr RuleList kGeneralRules[] = {lint_file_rules, lint_external_data_rules, lint_graph_rules, lint_cache_rules,
                                      lint_token_rules};

/// Text of files, on one line and as UTF-8: findings are printed and written as JSON.
std::string on_one_line(std::string_view text) {
  bool is_plain = is_utf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
                    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
                  });
  if (is_plain) return std::string(text);
  std::string escaped = quoted(text, 1000);
  return escaped.substr(1, escaped.size() - 2);
}

void apply(RuleList rules, const LintedBundle& bundle, std::vector<Finding>& findings) {
  for (const LintRule& rule : rules()) rule.check(bundle, FindingSink(findings, rule));
}

/// Names that optimum gives to graphs of models with several.
constexpr std::string_view kOptimumNames[] = {"decoder_model.onnx", "decoder_model_merged.onnx",
                                              "decoder_with_past_model.onnx", "encoder_model.onnx", "model.onnx"};

const Engine& recognise(const LintedBundle& bundle) {
  if (auto named = bundle.json("bundle.json").find("engine").as_string(); named && find_engine(*named) != nullptr)
    return *find_engine(*named);
  if (bundle.file("genai_config.json") != nullptr) return *find_engine("genai");
  bool has_program = std::any_of(bundle.files().begin(), bundle.files().end(),
                                 [](const LintedFile& file) { return file.name.ends_with(".pte"); });
  if (has_program && bundle.graphs().empty()) return *find_engine("executorch");
  bool has_config = bundle.file("config.json") != nullptr;
  bool has_onnx_folder = std::any_of(bundle.files().begin(), bundle.files().end(),
                                     [](const LintedFile& file) { return file.name.starts_with("onnx/"); });
  bool has_javascript_config = bundle.config().find("transformers.js_config").is_object();
  if (has_javascript_config || (has_config && has_onnx_folder)) return *find_engine("transformersjs");
  if (has_config && std::any_of(std::begin(kOptimumNames), std::end(kOptimumNames),
                                [&](std::string_view name) { return bundle.file(name) != nullptr; }))
    return *find_engine("optimum");
  return *find_engine("plain");
}

}  // namespace

bool LintReport::has_errors() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Finding::Severity::kError; });
}

void FindingSink::add(std::string_view file, std::string what) const {
  add(file, std::move(what), std::string(rule_->hint));
}

void FindingSink::add(std::string_view file, std::string what, std::string hint) const {
  findings_->push_back(
      {rule_->severity, std::string(rule_->name), on_one_line(file), on_one_line(what), on_one_line(hint)});
}

std::string some_of(const std::vector<std::string>& names) { return first_names(names, 3); }

Result<LintReport> lint(const fs::path& folder, std::string_view engine, const ProgramReader& reader) {
  if (!engine.empty() && find_engine(engine) == nullptr) {
    return fail(ErrorCode::kInvalidInput, format("there is no engine {}", quoted(engine)));
  }
  ARGOSY_TRY(LintedBundle bundle, LintedBundle::read(folder, reader));
  const Engine& linted = engine.empty() ? recognise(bundle) : *find_engine(engine);
  LintReport report{
      std::string(linted.name), bundle.graphs().size() + bundle.programs().size(), bundle.files().size(), {}};
  for (RuleList list : kGeneralRules) apply(list, bundle, report.findings);
  apply(linted.lint_rules, bundle, report.findings);
  return report;
}

std::string to_text(const Finding& finding) {
  std::string text = finding.severity == Finding::Severity::kError ? "error" : "warning";
  text += format("[{}] {}{}{}", finding.rule, finding.file, finding.file.empty() ? "" : ": ", finding.what);
  return finding.hint.empty() ? text : format("{}; {}", text, finding.hint);
}

std::vector<LintRuleInfo> lint_rules() {
  std::vector<LintRuleInfo> all;
  auto add = [&](std::string_view engine, RuleList list) {
    for (const LintRule& rule : list())
      all.push_back({std::string(engine), std::string(rule.name), rule.severity, std::string(rule.what)});
  };
  for (RuleList list : kGeneralRules) add("", list);
  for (const Engine& engine : all_engines()) add(engine.name, engine.lint_rules);
  return all;
}

}  // namespace argosy::engines
