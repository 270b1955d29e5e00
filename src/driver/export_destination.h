#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace argosy {

/// Where an export goes: one archive, or a folder with one for each component.
struct ExportDestination {
  std::filesystem::path path;
  bool is_folder = false;
};

/// A name that ends in .pt2 is one archive, any other a folder. Without a name: the folder "<model>-pt2" in the current
/// one. `model` is what the user called it: a folder, ORG/NAME or a repository in the Hub's cache.
ExportDestination export_destination(const std::string& output, const std::filesystem::path& model);

/// Fails unless the destination is new, empty, or an earlier export that may be replaced: an archive with our manifest,
/// a folder of nothing but such archives.
Status check_replaceable(const ExportDestination& destination);

}  // namespace argosy
