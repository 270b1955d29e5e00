#include "io/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "io/file.h"
#include "io/temporary_name.h"

namespace argosy {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  if (lock_ >= 0) ::close(lock_);
}

Result<TemporaryFolder> TemporaryFolder::create(const fs::path& destination) {
  TemporaryFolder folder;
  if (destination.has_parent_path()) {
    std::error_code failure;
    fs::create_directories(destination.parent_path(), failure);
    if (failure) return fail(system_error("create", destination.parent_path(), failure.value()));
  }
  remove_stale_temporaries(destination);
  TemporaryName names = temporary_name(destination);
  for (int n = 0; folder.path_.empty(); ++n) {
    fs::path candidate = names.numbered(n);
    if (::mkdir(candidate.c_str(), 0777) == 0) {
      folder.path_ = candidate;
    } else if (errno != EEXIST) {
      return fail(system_error("create", destination, errno));
    }
  }
  folder.lock_ = ::open(folder.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder.lock_ >= 0) ::flock(folder.lock_, LOCK_EX | LOCK_NB);
  return folder;
}

Status TemporaryFolder::sync() const {
  std::error_code failure;
  for (fs::recursive_directory_iterator it(path_, failure), end; !failure && it != end; it.increment(failure)) {
    fs::file_type type = it->symlink_status().type();
    if (type == fs::file_type::regular || type == fs::file_type::directory) ARGOSY_TRY_STATUS(sync_path(it->path()));
  }
  if (failure) return fail(system_error("list", path_, failure.value()));
  return sync_path(path_);
}

}  // namespace argosy
