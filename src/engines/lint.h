#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace argosy::engines {

struct Engine;

/// Something about a bundle that its engine will stumble over, or that is probably not meant.
struct Finding {
  enum class Severity : uint8_t { kError, kWarning };
  Severity severity = Severity::kError;
  std::string rule;  // a short name that never changes: "external-data-missing"
  std::string file;  // in the bundle; empty: the bundle as a whole
  std::string what;  // one line
  std::string hint;  // what to do, one line
};

/// Checks a folder against what an engine wants, whoever wrote it. Findings are in the order of rules, then of files.
/// An error is a folder that cannot be read; what is wrong inside it is a finding.
Result<std::vector<Finding>> lint(const std::filesystem::path& folder, const Engine& engine);

/// The engine that a folder is for, by its manifest or the files that it has; null if none is recognised.
const Engine* detect_engine(const std::filesystem::path& folder);

}  // namespace argosy::engines
