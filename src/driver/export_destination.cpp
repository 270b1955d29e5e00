#include "driver/export_destination.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "base/text.h"
#include "driver/export_manifest.h"
#include "io/file.h"
#include "io/onnx/onnx_model.h"
#include "io/zip.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHubPrefix = "models--";
constexpr uint64_t kMaxManifest = uint64_t{64} << 20;

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

bool is_own_model(const fs::path& path) {
  auto model = read_onnx_model(path);
  if (!model) return false;
  return std::ranges::any_of(model->metadata_props, [](const auto& each) { return each.first == kOnnxManifestKey; });
}

/// An ExecuTorch program that has our manifest among its data: the key is in the file's head.
bool is_own_program(const fs::path& path) {
  auto file = ReadFile::open(path);
  if (!file) return false;
  auto text = (*file)->read_text(0, std::min((*file)->size(), kMaxManifest));
  if (!text) return false;
  std::string_view head = *text;
  return head.size() > 8 && head.substr(4, 2) == "ET" && head.find(kExportManifest) != head.npos;
}

/// Whether a file is empty or one that an export wrote.
bool is_own_file(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) return false;
  if (fs::file_size(path, failure) == 0 && !failure) return true;
  if (path.extension() == ".onnx") return is_own_model(path);
  if (path.extension() == ".pte") return is_own_program(path);
  if (path.extension() != ".pt2") return false;
  auto zip = ZipReader::open(path);
  if (!zip) return false;
  for (const ZipEntry& entry : zip->entries()) {
    if (entry.name.ends_with(format("/extra/{}", kExportManifest))) return true;
  }
  return false;
}

/// What a folder's manifest says it holds, itself included; empty if it has none.
std::set<std::string> listed_files(const fs::path& folder) {
  auto text = read_text_file(folder / kBundleManifest, kMaxManifest);
  if (!text) return {};
  auto document = JsonDocument::parse_owned(*std::move(text), kBundleManifest);
  if (!document || !document->root().find("format").as_string().value_or("").starts_with("argosy-")) return {};
  std::set<std::string> names = {std::string(kBundleManifest)};
  for (JsonView name : document->root().find("files").items()) names.emplace(name.as_string().value_or(""));
  return names;
}

tl::unexpected<Error> foreign(const fs::path& path, std::string what) {
  return fail(ErrorCode::kInvalidInput, format("{} {}", quoted(path.native(), 1000), what),
              "choose another name for the output, or move it away");
}

}  // namespace

ExportDestination export_destination(const std::string& output, const fs::path& model, std::string_view suffix) {
  if (output.empty()) return {format("{}-{}", short_name(model), suffix.substr(1)), true};
  fs::path path = output;
  return {path, path.extension() != suffix};
}

Status check_replaceable(const ExportDestination& destination) {
  std::error_code failure;
  fs::file_status status = fs::status(destination.path, failure);
  if (status.type() == fs::file_type::not_found) return {};
  if (failure) return fail(system_error("examine", destination.path, failure.value()));
  if (!destination.is_folder) {
    if (fs::is_directory(status)) return foreign(destination.path, "is a folder, not a file");
    if (is_own_file(destination.path)) return {};
    return foreign(destination.path, "is there already and was not written by argosy export");
  }
  if (!fs::is_directory(status)) return foreign(destination.path, "is a file, not a folder");
  std::set<std::string> listed = listed_files(destination.path);
  for (fs::recursive_directory_iterator it(destination.path, failure), end; !failure && it != end;
       it.increment(failure)) {
    std::error_code ignored;
    if (fs::is_directory(it->symlink_status(ignored))) continue;
    fs::path name = it->path().lexically_relative(destination.path);
    if (!listed.contains(name.string()) && !is_own_file(it->path())) {
      return foreign(destination.path,
                     format("holds {}, which argosy export did not write", quoted(name.native(), 1000)));
    }
  }
  if (failure) return fail(system_error("list", destination.path, failure.value()));
  return {};
}

}  // namespace argosy
