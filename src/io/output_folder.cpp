#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "base/check.h"
#include "base/text.h"
#include "io/file.h"
#include "io/output.h"
#include "io/temporary_name.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

/// Syncs all files and folders below, and the folder itself. Links are not followed.
Status sync_tree(const fs::path& folder) {
  std::error_code failure;
  for (fs::recursive_directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    fs::file_type type = it->symlink_status().type();
    if (type == fs::file_type::regular || type == fs::file_type::directory) ARGOSY_TRY_STATUS(sync_path(it->path()));
  }
  if (failure) return fail(system_error("list", folder, failure.value()));
  return sync_path(folder);
}

bool is_unsupported(int error_number) { return error_number == EINVAL || error_number == ENOSYS; }

}  // namespace

struct OutputFolder::Impl {
  fs::path destination;
  fs::path temporary;
  Overwrite overwrite = Overwrite::kRefuse;
  int lock = -1;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (!temporary.empty()) {
      std::error_code ignored;
      fs::remove_all(temporary, ignored);
    }
    if (lock >= 0) ::close(lock);
  }

  tl::unexpected<Error> exists_already() const {
    return fail(ErrorCode::kInvalidInput, format("{} exists already", quoted(destination.native(), 1000)),
                "choose another name, remove it, or ask for it to be replaced");
  }

  Status check_destination() const {
    struct stat info;
    if (::lstat(destination.c_str(), &info) != 0) return {};
    if (overwrite == Overwrite::kRefuse) return exists_already();
    if (::stat(destination.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      return fail(ErrorCode::kInvalidInput, format("{} is a file, not a folder", quoted(destination.native(), 1000)),
                  "choose another name for the output");
    }
    return {};
  }

  /// Without RENAME_NOREPLACE plain rename() is used: between the check and it, only an empty folder could be replaced.
  Status rename_without_replacing() {
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, destination.c_str(), RENAME_NOREPLACE) == 0) {
      temporary.clear();
      return {};
    }
    if (errno == EEXIST) return exists_already();
    if (!is_unsupported(errno)) return fail(system_error("create", destination, errno));
    ARGOSY_TRY_STATUS(check_destination());
    if (::rename(temporary.c_str(), destination.c_str()) != 0) return fail(system_error("create", destination, errno));
    temporary.clear();
    return {};
  }

  /// Afterwards `temporary` names the old folder.
  Status exchange() {
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, destination.c_str(), RENAME_EXCHANGE) == 0) return {};
    if (!is_unsupported(errno)) return fail(system_error("replace", destination, errno));
    // Not named as a temporary: after a crash between the two renames it is all there is, and must not be cleared away.
    fs::path old = temporary;
    old += "-old";
    if (::rename(destination.c_str(), old.c_str()) != 0) return fail(system_error("replace", destination, errno));
    if (::rename(temporary.c_str(), destination.c_str()) != 0) {
      int error_number = errno;
      ::rename(old.c_str(), destination.c_str());
      return fail(system_error("create", destination, error_number));
    }
    temporary = old;
    return {};
  }
};

OutputFolder::OutputFolder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputFolder::OutputFolder(OutputFolder&&) noexcept = default;
OutputFolder& OutputFolder::operator=(OutputFolder&&) noexcept = default;
OutputFolder::~OutputFolder() = default;
const fs::path& OutputFolder::path() const { return impl_->temporary; }

Result<OutputFolder> OutputFolder::create(const fs::path& destination, Overwrite overwrite) {
  auto impl = std::make_unique<Impl>();
  ARGOSY_TRY(impl->destination, output_destination(destination));
  impl->overwrite = overwrite;
  ARGOSY_TRY_STATUS(impl->check_destination());
  if (impl->destination.has_parent_path()) {
    std::error_code failure;
    fs::create_directories(impl->destination.parent_path(), failure);
    if (failure) return fail(system_error("create", impl->destination.parent_path(), failure.value()));
  }
  remove_stale_temporaries(impl->destination);
  TemporaryName names = temporary_name(impl->destination);
  for (int n = 0; impl->temporary.empty(); ++n) {
    fs::path candidate = names.numbered(n);
    if (::mkdir(candidate.c_str(), 0777) == 0) {
      impl->temporary = candidate;
    } else if (errno != EEXIST) {
      return fail(system_error("create", impl->destination, errno));
    }
  }
  impl->lock = ::open(impl->temporary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (impl->lock >= 0) ::flock(impl->lock, LOCK_EX | LOCK_NB);
  return OutputFolder(std::move(impl));
}

Status OutputFolder::commit() {
  Impl& impl = *impl_;
  ARGOSY_CHECK(!impl.temporary.empty(), "commit of a folder that is committed already");
  ARGOSY_TRY_STATUS(sync_tree(impl.temporary));
  ARGOSY_TRY_STATUS(impl.check_destination());
  std::error_code ignored;
  if (fs::symlink_status(impl.destination, ignored).type() == fs::file_type::not_found) {
    ARGOSY_TRY_STATUS(impl.rename_without_replacing());
  } else {
    ARGOSY_TRY_STATUS(impl.exchange());
    fs::remove_all(impl.temporary, ignored);  // what cannot be removed now is stale, and removed by a later run
    impl.temporary.clear();
  }
  return sync_path(impl.destination.has_parent_path() ? impl.destination.parent_path() : ".");
}

}  // namespace argosy
