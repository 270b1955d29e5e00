#include "io/link_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/text.h"
#include "io/file.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

bool reflink(const fs::path& from, const fs::path& to) {
  int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) return false;
  int target = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool is_done = target >= 0 && ::ioctl(target, FICLONE, source) == 0;
  if (target >= 0) {
    ::close(target);
    if (!is_done) ::unlink(to.c_str());
  }
  ::close(source);
  return is_done;
}

}  // namespace

Status link_file(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::path real = fs::canonical(from, failure);
  if (failure) return fail(system_error("open", from, failure.value()));
  if (reflink(real, to)) return {};
  if (::link(real.c_str(), to.c_str()) == 0) return {};
  int error_number = errno;
  if (error_number == EXDEV) {
    return fail(ErrorCode::kIo,
                format("{} and {} are on different file systems, where a file cannot be linked",
                       quoted(real.native(), 1000), quoted(to.parent_path().native(), 1000)),
                "choose an output on the checkpoint's file system, or copy the weights (--weights copy)");
  }
  Error error = system_error("link", real, error_number);
  if (error_number == EPERM || error_number == EMLINK || error_number == EOPNOTSUPP)
    error.hint = "this file cannot be linked here; copy the weights (--weights copy)";
  return fail(std::move(error));
}

}  // namespace argosy
