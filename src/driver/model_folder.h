#pragma once

#include <filesystem>

#include "base/result.h"

namespace argosy {

/// The folder that holds a model's config.json, from what a user names a model by:
/// - that folder;
/// - a repository in the Hub's cache (models--ORG--NAME): the snapshot that refs/main names, or the only one;
/// - ORG/NAME, if `hub_cache` (may be empty) has it.
Result<std::filesystem::path> model_folder(const std::filesystem::path& model, const std::filesystem::path& hub_cache);

}  // namespace argosy
