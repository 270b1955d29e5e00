#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace argosy {

/// Where an export goes: one file (with its data beside it, where the format has such), or a folder with one for each
/// component.
struct ExportDestination {
  std::filesystem::path path;
  bool is_folder = false;
};

/// A name that ends in the backend's suffix (".pt2") is one file, any other a folder. Without a name: the folder
/// "<model>-pt2" in the current one. `model` is what the user called it: a folder, ORG/NAME or a repository in the
/// Hub's cache.
ExportDestination export_destination(const std::string& output, const std::filesystem::path& model,
                                     std::string_view suffix);

/// Fails unless the destination is new, empty, or an earlier export that may be replaced: a file with our manifest in
/// it, a folder of nothing but such files and those that the folder's own manifest lists.
Status check_replaceable(const ExportDestination& destination);

}  // namespace argosy
