#pragma once

#include <filesystem>

#include "base/result.h"

namespace argosy {

/// Makes `to` a file with the contents of `from` that takes no space of its own: a copy that shares its blocks where
/// the file system can (a reflink), else another name of the same file (a hard link), which then changes when `from`
/// does. Symbolic links in `from` are followed: the result never is one. Both must be on one file system; `to` must not
/// exist.
Status link_file(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace argosy
