#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"

namespace argosy {

/// What tells a file from itself at another time: which one it is, how long, and when it was last written to.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t seconds = 0, nanoseconds = 0;
  bool is_folder = false;

  /// Whether it is the same, unchanged. Folders change with what is in them, so that only which one it is counts.
  bool is_same(const FileStamp& other) const;
};

/// The stamp of what a path names; a link is not followed. kNotFound if there is nothing.
Result<FileStamp> stamp_of(const std::filesystem::path& path);

/// What is in a folder at one moment.
struct FolderContents {
  FileStamp folder;                          // where the path leads, if it is a link
  std::map<std::string, FileStamp> entries;  // by relative path; folders too. Links are entries, not entered
};

Result<FolderContents> folder_contents(const std::filesystem::path& folder);

/// The first entry of `now` that `before` lacks or that has changed since; empty: there is none.
std::string first_change(const FolderContents& before, const FolderContents& now);

}  // namespace argosy
