#include <algorithm>
#include <memory>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "io/file.h"
#include "io/output.h"
#include "io/temporary_folder.h"
#include "io/temporary_name.h"

namespace argosy {

namespace fs = std::filesystem;

struct OutputFiles::Impl {
  Impl(fs::path main_file, Overwrite what, TemporaryFolder folder)
      : main(std::move(main_file)), overwrite(what), temporary(std::move(folder)) {}

  static Status check(const fs::path& main, Overwrite overwrite) {
    std::error_code ignored;
    fs::file_status status = fs::symlink_status(main, ignored);
    if (status.type() == fs::file_type::not_found) return {};
    if (overwrite == Overwrite::kReplace && status.type() != fs::file_type::directory) return {};
    return fail(ErrorCode::kInvalidInput,
                format("{} {}", quoted(main.native(), 1000),
                       overwrite == Overwrite::kRefuse ? "exists already" : "is a folder, not a file"),
                "choose another name, remove it, or ask for it to be replaced");
  }

  Status move(const fs::path& name) const {
    std::error_code failure;
    fs::rename(temporary.path() / name, folder() / name, failure);
    if (failure) return fail(system_error("create", folder() / name, failure.value()));
    return {};
  }

  Status move_away(const fs::path& name, const fs::path& where) const {
    std::error_code failure;
    fs::rename(folder() / name, where / name, failure);
    if (failure && failure != std::errc::no_such_file_or_directory)
      return fail(system_error("replace", folder() / name, failure.value()));
    return {};
  }

  Status ask(const MayReplace& may_replace, const fs::path& name) const {
    std::error_code ignored;
    bool is_there = fs::symlink_status(folder() / name, ignored).type() != fs::file_type::not_found;
    return is_there && may_replace ? may_replace(folder() / name) : Status();
  }

  fs::path folder() const { return main.has_parent_path() ? main.parent_path() : fs::path("."); }

  fs::path main;
  Overwrite overwrite;
  TemporaryFolder temporary;
};

OutputFiles::OutputFiles(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OutputFiles::OutputFiles(OutputFiles&&) noexcept = default;
OutputFiles& OutputFiles::operator=(OutputFiles&&) noexcept = default;
OutputFiles::~OutputFiles() = default;
const fs::path& OutputFiles::path() const { return impl_->temporary.path(); }

Result<OutputFiles> OutputFiles::create(const fs::path& main, Overwrite overwrite) {
  ARGOSY_TRY(fs::path destination, output_destination(main));
  ARGOSY_TRY_STATUS(Impl::check(destination, overwrite));
  ARGOSY_TRY(TemporaryFolder temporary, TemporaryFolder::create(destination));
  return OutputFiles(std::make_unique<Impl>(std::move(destination), overwrite, std::move(temporary)));
}

Status OutputFiles::commit(const MayReplace& may_replace) {
  Impl& impl = *impl_;
  ARGOSY_CHECK(!impl.temporary.path().empty(), "commit of files that are committed already");
  ARGOSY_TRY_STATUS(impl.temporary.sync());
  ARGOSY_TRY_STATUS(Impl::check(impl.main, impl.overwrite));
  std::error_code failure;
  std::vector<fs::path> names;
  for (fs::directory_iterator it(impl.temporary.path(), failure), end; !failure && it != end; it.increment(failure))
    names.push_back(it->path().filename());
  if (failure) return fail(system_error("list", impl.temporary.path(), failure.value()));
  std::ranges::sort(names);
  ARGOSY_TRY_STATUS(impl.ask(may_replace, impl.main.filename()));
  for (const fs::path& name : names) {
    if (name != impl.main.filename()) ARGOSY_TRY_STATUS(impl.ask(may_replace, name));
  }
  // Moved away, not removed: freeing the blocks of large files takes a while, in which the name would show nothing.
  if (names.size() > 1) {
    fs::path old = impl.temporary.path() / kReplacedFiles;
    fs::create_directory(old, failure);
    if (failure) return fail(system_error("create", old, failure.value()));
    ARGOSY_TRY_STATUS(impl.move_away(impl.main.filename(), old));
    for (const fs::path& name : names) ARGOSY_TRY_STATUS(impl.move_away(name, old));
  }
  for (const fs::path& name : names) {
    if (name != impl.main.filename()) ARGOSY_TRY_STATUS(impl.move(name));
  }
  ARGOSY_TRY_STATUS(impl.move(impl.main.filename()));
  fs::remove_all(impl.temporary.path(), failure);
  impl.temporary.rename({});
  remove_stale_temporaries(impl.main);  // of a replacement that was interrupted something is left until now
  return sync_path(impl.folder());
}

}  // namespace argosy
