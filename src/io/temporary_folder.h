#pragma once

#include <filesystem>

#include "base/result.h"

namespace argosy {

/// A folder under a temporary name beside its destination, locked; removed with all that is in it when destroyed.
class TemporaryFolder {
 public:
  /// Makes the destination's parent folders that are missing, and removes temporaries that killed runs left.
  static Result<TemporaryFolder> create(const std::filesystem::path& destination);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  /// Empty once it is released.
  const std::filesystem::path& path() const { return path_; }
  /// Syncs all files and folders in it, and itself. Links are not followed.
  Status sync() const;
  /// What is at that path from now on is removed in its place; empty: nothing is.
  void rename(std::filesystem::path path) { path_ = std::move(path); }

 private:
  TemporaryFolder() = default;
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace argosy
