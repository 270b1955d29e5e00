#include "driver/disk_space.h"

#include <system_error>

#include "base/text.h"

namespace argosy {

namespace fs = std::filesystem;

std::optional<DiskSpace> disk_space_for(const fs::path& destination) {
  std::error_code failure;
  fs::path folder = fs::absolute(destination, failure).parent_path();
  while (!fs::exists(folder, failure) && folder.has_relative_path()) folder = folder.parent_path();
  fs::space_info space = fs::space(folder, failure);
  if (failure || space.capacity == 0) return std::nullopt;
  return DiskSpace{folder, space.available};
}

Status check_fits(const fs::path& destination, uint64_t bytes) {
  std::optional<DiskSpace> space = disk_space_for(destination);
  if (!space || space->free_bytes >= bytes) return {};
  return fail(ErrorCode::kIo,
              format("{} does not fit: it takes {}, and there are {} free in {}", quoted(destination.native(), 1000),
                     format_bytes(bytes), format_bytes(space->free_bytes), quoted(space->folder.native(), 1000)),
              "free some space or choose another place for the output");
}

}  // namespace argosy
