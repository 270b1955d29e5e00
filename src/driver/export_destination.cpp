#include "driver/export_destination.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "base/text.h"
#include "driver/export_manifest.h"
#include "io/file.h"
#include "io/onnx/onnx_model.h"
#include "io/temporary_name.h"
#include "io/zip.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHubPrefix = "models--";

/// The model's name without its folder or organisation.
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

/// Whether a file is one that an export wrote.
bool is_own_file(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_regular_file(path, failure)) return false;
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

bool is_empty_file(const fs::path& path) {
  std::error_code failure;
  return fs::is_regular_file(path, failure) && fs::file_size(path, failure) == 0 && !failure;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

/// For one file: the file, and those beside it that are named like it.
std::optional<FolderContents> find_files(const fs::path& path) {
  std::optional<FolderContents> found;
  std::error_code failure;
  std::string stem = path.stem();
  for (fs::directory_iterator it(folder_of(path), failure), end; !failure && it != end; it.increment(failure)) {
    std::string name = it->path().filename();
    auto stamp = name.starts_with(stem) ? stamp_of(it->path()) : Result<FileStamp>(FileStamp());
    if (!name.starts_with(stem) || !stamp) continue;
    if (!found) found.emplace();
    found->entries.emplace(std::move(name), *stamp);
  }
  return found;
}

bool was_interrupted(const fs::path& path) {
  std::error_code failure;
  for (fs::directory_iterator it(folder_of(path), failure), end; !failure && it != end; it.increment(failure)) {
    if (is_interrupted_replacement(it->path(), path)) return true;
  }
  return false;
}

std::optional<FolderContents> find_contents(const fs::path& path, bool is_folder) {
  if (!is_folder) return find_files(path);
  auto contents = folder_contents(path);
  return contents ? std::optional(*std::move(contents)) : std::nullopt;
}

/// Whether a file is new or has changed since the export began. If nothing was there then, files that an export may
/// replace came from another export.
bool has_changed(const ExportDestination& destination, const std::string& name) {
  if (!destination.found) return false;
  auto before = destination.found->entries.find(name);
  auto now = stamp_of(folder_of(destination.path) / name);
  return now && (before == destination.found->entries.end() || !before->second.is_same(*now));
}

Status check_file(const ExportDestination& destination) {
  std::error_code ignored;
  const fs::path& path = destination.path;
  if (fs::is_directory(path, ignored)) return foreign(path, "is a folder, not a file");
  // An empty file of the output's name holds nothing to lose.
  if (!is_empty_file(path) && !is_own_file(path))
    return foreign(path, "is there already and was not written by argosy export");
  return {};
}

/// An entry of a folder that no earlier export wrote; empty: there is none.
std::string foreign_entry(const fs::path& where, const FolderContents& contents) {
  std::set<std::string> own = listed_files(where);
  for (const auto& [name, entry] : contents.entries) {
    if (!entry.is_folder && !own.contains(name) && is_own_file(where / name)) own.insert(name);
  }
  std::set<std::string> folders;
  for (const std::string& name : own) {
    for (fs::path folder = fs::path(name).parent_path(); !folder.empty(); folder = folder.parent_path())
      folders.insert(folder.string());
  }
  for (const auto& [name, entry] : contents.entries) {
    if (!(entry.is_folder ? folders : own).contains(name)) return name;
  }
  return "";
}

}  // namespace

ExportDestination export_destination(const std::string& output, const fs::path& model, std::string_view suffix) {
  fs::path path = output.empty() ? fs::path(format("{}-{}", short_name(model), suffix.substr(1))) : fs::path(output);
  bool is_folder = output.empty() || path.extension() != suffix;
  return {path, is_folder, find_contents(path, is_folder), !is_folder && was_interrupted(path)};
}

Status check_replaceable(const ExportDestination& destination) {
  return check_replaceable(destination, destination.path);
}

Status check_replaceable(const ExportDestination& destination, const fs::path& where) {
  std::error_code failure;
  fs::file_status status = fs::status(where, failure);
  if (status.type() == fs::file_type::not_found) return {};
  if (failure) return fail(system_error("examine", where, failure.value()));
  if (!destination.is_folder) {
    ARGOSY_TRY_STATUS(check_file(destination));
    if (has_changed(destination, where.filename())) return foreign(where, "changed while the export was made");
    return {};
  }
  if (!fs::is_directory(status)) return foreign(destination.path, "is a file, not a folder");
  ARGOSY_TRY(FolderContents contents, folder_contents(where));
  if (std::string name = foreign_entry(where, contents); !name.empty()) {
    return foreign(destination.path, format("holds {}, which argosy export did not write", quoted(name, 1000)));
  }
  // A new folder in its place is another export's: exports appear as whole folders.
  if (!destination.found || !destination.found->folder.is_same(contents.folder)) return {};
  if (std::string name = first_change(*destination.found, contents); !name.empty()) {
    return foreign(destination.path, format("holds {}, which changed while the export was made", quoted(name, 1000)));
  }
  return {};
}

Status check_replaceable_beside(const ExportDestination& destination, const std::string& file) {
  fs::path path = folder_of(destination.path) / file;
  if (!is_there(path)) return {};
  // A data file does not show who wrote it; beside a model of ours it is that model's.
  bool is_orphan = destination.was_interrupted && !is_there(destination.path);
  if (!is_own_file(destination.path) && !is_orphan)
    return foreign(path, "is there already and belongs to no export of this name");
  if (has_changed(destination, file)) return foreign(path, "changed while the export was made");
  return {};
}

}  // namespace argosy
