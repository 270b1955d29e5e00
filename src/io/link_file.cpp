#include "io/link_file.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/system.h"
#include "base/text.h"
#include "io/file.h"

namespace argosy {

namespace fs = std::filesystem;
Status link_file(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::path real = fs::canonical(from, failure);
  if (failure) return fail(system_error("open", from, failure.value()));
  if (system::clone_file(real.c_str(), to.c_str())) return {};
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
