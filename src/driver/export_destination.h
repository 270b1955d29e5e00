#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/folder_contents.h"

namespace argosy {

/// Where an export goes: one file (with its data beside it, if the format has that), or a folder with one for each
/// component.
struct ExportDestination {
  std::filesystem::path path;
  bool is_folder = false;
  /// What was there when the export began: of a folder everything, of a file it and those beside it that are called
  /// like it. Absent: not looked at, or nothing.
  std::optional<FolderContents> found = std::nullopt;
  /// For a file: a run was killed while it replaced it, so that there may be data beside it but no file.
  bool was_interrupted = false;
};

/// A name that ends in the backend's suffix (".pt2") is one file, any other a folder. Without a name: the folder
/// "<model>-pt2" in the current one. `model` is what the user called it: a folder, ORG/NAME or a repository in the
/// Hub's cache. Records what is there now.
ExportDestination export_destination(const std::string& output, const std::filesystem::path& model,
                                     std::string_view suffix);

/// Fails unless the destination is new, empty, or an earlier export that may be replaced: a file with our manifest in
/// it, a folder of nothing but such files and those that the folder's own manifest lists. All else is the user's, empty
/// files and empty folders too, and so is what appeared or changed since the export began.
Status check_replaceable(const ExportDestination& destination);

/// The same for a folder that has been moved elsewhere for the moment.
Status check_replaceable(const ExportDestination& destination, const std::filesystem::path& where);

/// Fails unless a file that an export to one file would put beside it is new, or belongs to an earlier export of the
/// same name.
Status check_replaceable_beside(const ExportDestination& destination, const std::string& file);

}  // namespace argosy
