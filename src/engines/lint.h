#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engines/lint_program.h"

namespace argosy::engines {

/// A problem of a bundle: its engine will fail on it (an error), or it is probably not intended (a warning).
struct Finding {
  enum class Severity : uint8_t { kError, kWarning };
  Severity severity = Severity::kError;
  std::string rule;  // a short name that never changes: "external-data-missing"
  std::string file;  // in the bundle; empty: the bundle as a whole
  std::string what;  // one line
  std::string hint;  // what to do, one line
};

/// "error[external-data-missing] model.onnx: what; hint"
std::string to_text(const Finding& finding);

/// A lint rule, for lists.
struct LintRuleInfo {
  std::string engine;  // to whose bundles it applies; empty: to all
  std::string name;
  Finding::Severity severity = Finding::Severity::kError;
  std::string what;  // that is reported
};

struct LintReport {
  std::string engine;
  size_t graphs = 0, files = 0;   // that were looked at
  std::vector<Finding> findings;  // in the order of rules, then of files

  bool has_errors() const;
};

/// Checks a folder against the needs of an engine, whoever wrote it; graphs are read without their weights. Texts of
/// findings are UTF-8 without line breaks, whatever the files hold. Fails only for a folder that cannot be read, or an
/// engine without rules; problems inside the folder are findings.
///
/// Programs for ExecuTorch are read by `reader`; without one, rules about their contents find nothing.
/// Without an engine (""), it is the one that bundle.json names, else the one whose files there are, else "plain".
Result<LintReport> lint(const std::filesystem::path& folder, std::string_view engine = "",
                        const ProgramReader& reader = {});

/// All rules, in the order in which they are applied.
std::vector<LintRuleInfo> lint_rules();

}  // namespace argosy::engines
