#include "driver/export_destination.h"

#include <system_error>

#include "base/text.h"
#include "driver/export_manifest.h"
#include "io/file.h"
#include "io/zip.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHubPrefix = "models--";

/// The model's name without where it is or whose it is.
std::string short_name(const fs::path& model) {
  std::error_code ignored;
  fs::path path = fs::absolute(model, ignored).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  // models--ORG--NAME/snapshots/REVISION
  if (path.parent_path().filename() == "snapshots") path = path.parent_path().parent_path();
  std::string name = path.filename().string();
  if (name.starts_with(kHubPrefix)) name = name.substr(name.rfind("--") + 2);
  return name.empty() ? "model" : name;
}

/// Whether a file is empty or an archive that an export wrote.
bool is_own_archive(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) return false;
  if (fs::file_size(path, failure) == 0 && !failure) return true;
  if (path.extension() != ".pt2") return false;
  auto zip = ZipReader::open(path);
  if (!zip) return false;
  for (const ZipEntry& entry : zip->entries()) {
    if (entry.name.ends_with(format("/extra/{}", kExportManifest))) return true;
  }
  return false;
}

tl::unexpected<Error> foreign(const fs::path& path, std::string what) {
  return fail(ErrorCode::kInvalidInput, format("{} {}", quoted(path.native(), 1000), what),
              "choose another name for the output, or move it away");
}

}  // namespace

ExportDestination export_destination(const std::string& output, const fs::path& model) {
  if (output.empty()) return {format("{}-pt2", short_name(model)), true};
  fs::path path = output;
  return {path, path.extension() != ".pt2"};
}

Status check_replaceable(const ExportDestination& destination) {
  std::error_code failure;
  fs::file_status status = fs::status(destination.path, failure);
  if (status.type() == fs::file_type::not_found) return {};
  if (failure) return fail(system_error("examine", destination.path, failure.value()));
  if (!destination.is_folder) {
    if (fs::is_directory(status)) return foreign(destination.path, "is a folder, not an archive");
    if (is_own_archive(destination.path)) return {};
    return foreign(destination.path, "is there already and was not written by argosy export");
  }
  if (!fs::is_directory(status)) return foreign(destination.path, "is a file, not a folder");
  for (fs::directory_iterator it(destination.path, failure), end; !failure && it != end; it.increment(failure)) {
    if (!is_own_archive(it->path())) {
      return foreign(destination.path, format("holds {}, which argosy export did not write",
                                              quoted(it->path().filename().native(), 1000)));
    }
  }
  if (failure) return fail(system_error("list", destination.path, failure.value()));
  return {};
}

}  // namespace argosy
