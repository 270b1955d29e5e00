#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "base/check.h"
#include "base/system.h"
#include "base/text.h"
#include "io/file.h"
#include "io/output.h"
#include "io/temporary_folder.h"
#include "io/temporary_name.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

}  // namespace

struct OutputFolder::Impl {
  Impl(fs::path where, Overwrite what, TemporaryFolder folder)
      : destination(std::move(where)), overwrite(what), temporary(std::move(folder)) {}

  fs::path destination;
  Overwrite overwrite;
  TemporaryFolder temporary;

  static tl::unexpected<Error> exists_already(const fs::path& destination) {
    return fail(ErrorCode::kInvalidInput, format("{} exists already", quoted(destination.native(), 1000)),
                "choose another name, remove it, or ask for it to be replaced");
  }

  Status check_destination() const { return check_destination(destination, overwrite); }

  static Status check_destination(const fs::path& destination, Overwrite overwrite) {
    struct stat info;
    if (::lstat(destination.c_str(), &info) != 0) return {};
    if (overwrite == Overwrite::kRefuse) return exists_already(destination);
    if (::stat(destination.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      return fail(ErrorCode::kInvalidInput, format("{} is a file, not a folder", quoted(destination.native(), 1000)),
                  "choose another name for the output");
    }
    return {};
  }

  /// Where the system cannot refuse to replace, plain rename() is used: between the check and it, only an empty folder
  /// could be replaced.
  Status rename_without_replacing() {
    if (system::rename_to_new(temporary.path().c_str(), destination.c_str())) {
      temporary.rename({});
      return {};
    }
    if (errno == EEXIST) return exists_already(destination);
    if (!system::is_unsupported(errno)) return fail(system_error("create", destination, errno));
    ARGOSY_TRY_STATUS(check_destination());
    if (::rename(temporary.path().c_str(), destination.c_str()) != 0)
      return fail(system_error("create", destination, errno));
    temporary.rename({});
    return {};
  }

  /// Afterwards `temporary` names the old folder.
  Status exchange() {
    if (system::exchange_names(temporary.path().c_str(), destination.c_str())) return {};
    if (!system::is_unsupported(errno)) return fail(system_error("replace", destination, errno));
    // Not named as a temporary: after a crash between the two renames it is all there is, and must not be cleared away.
    fs::path old = temporary.path();
    old += "-old";
    if (::rename(destination.c_str(), old.c_str()) != 0) return fail(system_error("replace", destination, errno));
    if (::rename(temporary.path().c_str(), destination.c_str()) != 0) {
      int error_number = errno;
      ::rename(old.c_str(), destination.c_str());
      return fail(system_error("create", destination, error_number));
    }
    temporary.rename(old);
    return {};
  }

  /// Puts the new folder in the old one's place, which is removed unless `may_replace` finds it changed.
  Status replace(const MayReplace& may_replace) {
    if (may_replace) ARGOSY_TRY_STATUS(may_replace(destination));
    ARGOSY_TRY_STATUS(exchange());
    Status status = may_replace ? may_replace(temporary.path()) : Status();
    if (!status) {
      if (exchange()) return status;
      Error error = std::move(status.error());
      error.hint = format("the folder as it was is {}", quoted(temporary.path().native(), 1000));
      temporary.rename({});
      return fail(std::move(error));
    }
    std::error_code ignored;
    fs::remove_all(temporary.path(), ignored);  // what cannot be removed now is stale, and removed by a later run
    temporary.rename({});
    return {};
  }
};

OutputFolder::OutputFolder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputFolder::OutputFolder(OutputFolder&&) noexcept = default;
OutputFolder& OutputFolder::operator=(OutputFolder&&) noexcept = default;
OutputFolder::~OutputFolder() = default;
const fs::path& OutputFolder::path() const { return impl_->temporary.path(); }

Result<OutputFolder> OutputFolder::create(const fs::path& path, Overwrite overwrite) {
  ARGOSY_TRY(fs::path destination, output_destination(path));
  ARGOSY_TRY_STATUS(Impl::check_destination(destination, overwrite));
  ARGOSY_TRY(TemporaryFolder temporary, TemporaryFolder::create(destination));
  return OutputFolder(std::make_unique<Impl>(std::move(destination), overwrite, std::move(temporary)));
}

Status OutputFolder::commit(const MayReplace& may_replace) {
  Impl& impl = *impl_;
  ARGOSY_CHECK(!impl.temporary.path().empty(), "commit of a folder that is committed already");
  ARGOSY_TRY_STATUS(impl.temporary.sync());
  ARGOSY_TRY_STATUS(impl.check_destination());
  std::error_code ignored;
  bool is_new = fs::symlink_status(impl.destination, ignored).type() == fs::file_type::not_found;
  ARGOSY_TRY_STATUS(is_new ? impl.rename_without_replacing() : impl.replace(may_replace));
  return sync_path(impl.destination.has_parent_path() ? impl.destination.parent_path() : ".");
}

}  // namespace argosy
