#include "io/inside_folder.h"

#include <algorithm>
#include <system_error>

#include "base/text.h"
#include "io/file.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& folder) {
  auto [rest, end] = std::mismatch(path.begin(), path.end(), folder.begin(), folder.end());
  return end == folder.end();
}

/// The models--X folder of a folder in the Hub's cache (…/models--X/snapshots/REVISION[/…]); empty for any other
/// folder.
fs::path hub_model_folder(const fs::path& folder) {
  fs::path result;
  for (auto part = folder.begin(); part != folder.end(); ++part) {
    result /= *part;
    auto next = std::next(part);
    if (part->native().starts_with("models--") && next != folder.end() && *next == "snapshots" &&
        std::next(next) != folder.end()) {
      return result;
    }
  }
  return {};
}

}  // namespace

Status check_inside_folder(const fs::path& file, const fs::path& folder) {
  std::error_code failure;
  // Most files are no links and directly inside: nothing to resolve.
  if (file.parent_path() == folder && fs::symlink_status(file, failure).type() == fs::file_type::regular) return {};
  fs::path real_folder = fs::canonical(folder, failure);
  if (failure) return fail(system_error("follow", folder, failure.value()));
  fs::path real_file = fs::canonical(file, failure);
  if (failure) {
    if (failure == std::errc::no_such_file_or_directory) return {};
    return fail(system_error("follow", file, failure.value()));
  }
  if (is_inside(real_file, real_folder)) return {};
  fs::path model = hub_model_folder(real_folder);
  if (!model.empty() && is_inside(real_file, model)) return {};
  return fail(ErrorCode::kInvalidInput,
              format("{} is a link that leads out of its folder, to {}", quoted(file.native(), 1000),
                     quoted(real_file.native(), 1000)),
              "if you trust it, replace the link by the file or by a hard link, or give the path of the folder that "
              "really holds the files");
}

}  // namespace argosy
