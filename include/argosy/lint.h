#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

/// What `argosy lint` says of a folder (docs/lint.md has all rules).
namespace argosy {
inline namespace v1 {

/// A problem of a bundle: its engine will fail on it, or it is probably not intended.
struct LintFinding {
  bool is_error = false;
  std::string rule;  // a short name that never changes: "external-data-missing"
  std::string file;  // in the bundle; empty: the bundle as a whole
  std::string what;  // one line
  std::string hint;  // what to do, one line
};

struct LintReport {
  std::string engine;                 // that the folder was checked for
  uint64_t graphs = 0, files = 0;     // that were looked at
  std::vector<LintFinding> findings;  // in the order of rules, then of files
};

/// Checks a folder against the needs of an engine, whoever wrote it. Without the name of one: of that which it is for.
/// Problems inside the folder are findings; an error is a folder that cannot be read, or an engine without rules.
Result<LintReport> lint_bundle(const std::filesystem::path& folder, const std::string& engine = "");

}  // namespace v1
}  // namespace argosy
