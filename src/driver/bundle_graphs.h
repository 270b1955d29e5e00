#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace argosy {

/// The graphs of a folder, by their paths in it, and what the folder says of itself.
struct BundleGraphs {
  std::vector<std::string> graphs;
  std::string about;
};

/// What a folder's manifest lists; nothing if it has none. Names may be anything: those that lead out of the folder are
/// errors.
Result<BundleGraphs> listed_graphs(const std::filesystem::path& folder);

/// All graphs that are in a folder.
std::vector<std::string> graphs_in(const std::filesystem::path& folder);

}  // namespace argosy
