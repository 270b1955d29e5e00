#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "engines/lint.h"
#include "engines/lint_bundle.h"

namespace argosy::engines {

/// Where a rule says what it found. Severity, name and hint are the rule's.
class FindingSink {
 public:
  FindingSink(std::vector<Finding>& findings, const struct LintRule& rule) : findings_(&findings), rule_(&rule) {}
  void add(std::string_view file, std::string what) const;
  void add(std::string_view file, std::string what, std::string hint) const;

 private:
  std::vector<Finding>* findings_;
  const LintRule* rule_;
};

/// A row: what is looked for, and how.
struct LintRule {
  std::string_view name;
  Finding::Severity severity;
  std::string_view what;  // that is reported, as --list-rules and docs/lint.md say it
  std::string_view hint;  // what to do
  void (*check)(const LintedBundle& bundle, const FindingSink& found);
};

inline constexpr auto kLintError = Finding::Severity::kError;
inline constexpr auto kLintWarning = Finding::Severity::kWarning;

// Rules for everyone's bundles.
std::span<const LintRule> lint_file_rules();           // lint_files.cpp
std::span<const LintRule> lint_external_data_rules();  // lint_external_data.cpp
std::span<const LintRule> lint_graph_rules();          // lint_graphs.cpp
std::span<const LintRule> lint_cache_rules();          // lint_cache.cpp
std::span<const LintRule> lint_token_rules();          // lint_tokens.cpp

// Rules for the bundles of one engine, in its folder.
std::span<const LintRule> lint_executorch_rules();
std::span<const LintRule> lint_genai_rules();
std::span<const LintRule> lint_transformersjs_rules();
std::span<const LintRule> lint_optimum_rules();
std::span<const LintRule> lint_plain_rules();

/// "a", "b", "c" and 5 more: names that files gave, for messages.
std::string some_of(const std::vector<std::string>& names);

}  // namespace argosy::engines
