#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace argosy::api {

/// What `argosy inspect --json` says of a file, or of the graphs of an exported folder: JSON on one line. `schemas` is
/// a file of the schemas of ops, for .pt2 archives; it may not exist. Problems beyond the first are in `diagnostics`.
Result<std::string> inspect_json(const std::filesystem::path& path, const std::filesystem::path& schemas,
                                 Diagnostics& diagnostics);

}  // namespace argosy::api
