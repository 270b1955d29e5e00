#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.h"

namespace argosy {

struct DiskSpace {
  std::filesystem::path folder;  // the nearest one that exists
  uint64_t free_bytes = 0;
};

/// Of the file system that `destination`, which need not exist, is or would be on. nullopt: it does not say.
std::optional<DiskSpace> disk_space_for(const std::filesystem::path& destination);

/// Fails if so many bytes do not fit: before gigabytes are written, not after.
Status check_fits(const std::filesystem::path& destination, uint64_t bytes);

}  // namespace argosy
