#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace argosy {

/// What a temporary beside `destination` is called: prefix + n + suffix, n = 0, 1, …; host and process are in the
/// prefix.
struct TemporaryName {
  std::filesystem::path folder;
  std::string prefix;
  std::filesystem::path numbered(int n) const;
};

/// The destination without trailing separators, and with a last component that is a name; "." and ".." are refused.
Result<std::filesystem::path> output_destination(const std::filesystem::path& path);

TemporaryName temporary_name(const std::filesystem::path& destination);

/// Whether a name is that of a temporary of this destination, made on this host.
bool is_temporary_of(const std::filesystem::path& path, const std::filesystem::path& destination);

/// In a temporary folder: where what was there before goes, while several files replace it.
inline constexpr const char* kReplacedFiles = ".old";

/// Whether `path` is what a run left that was killed while it replaced several files, the destination among them.
bool is_interrupted_replacement(const std::filesystem::path& path, const std::filesystem::path& destination);

/// Removes temporaries of this destination whose process, on this host, is gone and which nobody has locked. Best
/// effort. As long as the destination is missing, an interrupted replacement is emptied and stays: it alone tells whose
/// the files beside the destination are.
void remove_stale_temporaries(const std::filesystem::path& destination);

/// fsync of a file or folder.
Status sync_path(const std::filesystem::path& path);

}  // namespace argosy
