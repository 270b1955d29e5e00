#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/lint.h"

namespace argosy {

/// An engine that a user's package knows: its bundles are those of an engine of ours, and what its functions add.
struct OwnEngine {
  std::string name, title;
  std::string package, version;               // that has it
  std::map<std::string, std::string> graphs;  // names of files by components, of a plain bundle
  /// Adds files to a bundle that is written whole, with its manifest, and is not in its place yet. Their names.
  std::function<Result<std::vector<std::string>>(const std::filesystem::path& folder)> complete;
  /// What the engine would fail on.
  std::function<Result<std::vector<engines::Finding>>(const std::filesystem::path& folder)> lint;
};

}  // namespace argosy
