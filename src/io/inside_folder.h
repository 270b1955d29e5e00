#pragma once

#include <filesystem>

#include "base/result.h"

namespace argosy {

/// Refuses a file, found in or named by a model's folder, that lies elsewhere once links are followed. The path of the
/// folder may be a link, or go through some. The one exception is the Hub's cache, where
/// models--X/snapshots/REVISION/file points at models--X/blobs/HASH: from a folder inside models--X/snapshots, links
/// may lead anywhere inside the same models--X. So a downloaded folder of unknown origin cannot make anyone read, or
/// publish, other files of this machine. Files that do not exist pass; opening them gives the better message.
Status check_inside_folder(const std::filesystem::path& file, const std::filesystem::path& folder);

}  // namespace argosy
