#include "driver/model_folder.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "io/checkpoint_index.h"
#include "io/file.h"
#include "io/inside_folder.h"
#include "io/json.h"
#include "io/names.h"
#include "io/safetensors.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxReference = 1024;
constexpr uint64_t kMaxConfig = uint64_t{16} << 20;
constexpr size_t kMaxNamePart = 96;

bool has_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool has_configuration(const fs::path& folder) { return has_file(folder / "config.json"); }

bool has_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The commit that a revision of a repository stands for; empty if the cache does not know the revision.
std::string commit_of(const fs::path& repository, const std::string& revision) {
  if (!is_plain_relative_path(revision)) return "";
  auto reference = read_text_file(repository / "refs" / revision, kMaxReference);
  if (reference) {
    std::string commit = *std::move(reference);
    while (!commit.empty() && commit.back() <= ' ') commit.pop_back();
    // A snapshot's folder is a name, never a path.
    return is_plain_relative_path(commit) && commit.find('/') == std::string::npos ? commit : "";
  }
  bool is_name = revision.find('/') == std::string::npos;
  return is_name && has_folder(repository / "snapshots" / revision) ? revision : "";
}

/// What the checkpoint of a folder lacks; empty: nothing. Contents are not read.
std::string missing_weights(const fs::path& folder) {
  auto file = find_checkpoint_in(folder);
  if (!file) return "its weights";
  if (file->extension() != ".json") return has_file(*file) ? "" : "its weights";
  auto text = read_text_file(*file, kMaxSafetensorsHeader);
  if (!text) return format("the index {}", quoted(file->filename().native()));
  auto index = parse_checkpoint_index(*std::move(text), quoted(file->native(), 1000));
  // A bad index is reported when the checkpoint is opened: a download would bring the same again.
  if (!index) return "";
  auto is_missing = [&](const std::string& shard) { return !has_file(folder / shard); };
  auto count = std::count_if(index->shards.begin(), index->shards.end(), is_missing);
  return count == 0 ? "" : format("{} of its {} shards", count, index->shards.size());
}

/// The missing Python file of an entry of the configuration's auto_map, such as "modeling_x.XModel". Entries of other
/// repositories ("org/name--modeling_x.XModel") do not count.
std::string missing_code(const fs::path& folder) {
  auto text = read_text_file(folder / "config.json", kMaxConfig);
  if (!text) return "config.json";
  auto document = JsonDocument::parse_owned(*std::move(text), "config.json");
  if (!document) return "";
  JsonView map = document->root().find("auto_map");
  if (!map.is_object()) return "";
  for (auto [name, value] : map.members()) {
    std::string module(value.as_string().value_or(""));
    module = module.substr(0, module.find('.'));
    if (module.empty() || module.find("--") != std::string::npos || !is_plain_relative_path(module)) continue;
    if (!has_file(folder / (module + ".py"))) return format("{}.py", module);
  }
  return "";
}

/// The snapshot of a repository that is named by its path.
Result<FoundModel> find_snapshot(const fs::path& repository, const std::string& revision) {
  std::string commit = commit_of(repository, revision.empty() ? "main" : revision);
  if (!commit.empty() && has_configuration(repository / "snapshots" / commit)) {
    return FoundModel{repository / "snapshots" / commit, commit, ""};
  }
  if (!revision.empty()) {
    return fail(ErrorCode::kNotFound,
                format("{} has no snapshot of {}", quoted(repository.native(), 1000), quoted(revision)),
                "see its folder refs for the revisions that were downloaded");
  }
  std::vector<fs::path> snapshots;
  std::error_code failure;
  for (fs::directory_iterator it(repository / "snapshots", failure), end; !failure && it != end;
       it.increment(failure)) {
    if (has_configuration(it->path())) snapshots.push_back(it->path());
  }
  if (snapshots.size() == 1) return FoundModel{snapshots[0], snapshots[0].filename().string(), ""};
  return fail(ErrorCode::kNotFound,
              format("{} has {} snapshots with a config.json", quoted(repository.native(), 1000), snapshots.size()),
              snapshots.empty() ? "download the model first" : "name one of them by --revision");
}

/// The snapshot of ORG/NAME, if it is all there.
FoundModel find_in_cache(const ModelRequest& request, const std::string& name) {
  auto lacks = [](std::string what) { return FoundModel{{}, "", std::move(what)}; };
  if (request.hub_cache.empty()) return lacks("the model");
  size_t slash = name.find('/');
  fs::path repository = request.hub_cache / format("models--{}--{}", name.substr(0, slash), name.substr(slash + 1));
  if (!has_folder(repository / "snapshots")) return lacks("the model");
  std::string revision = request.revision.empty() ? "main" : request.revision;
  std::string commit = commit_of(repository, revision);
  if (commit.empty()) return lacks(format("revision {} of the model", quoted(revision)));
  FoundModel found{repository / "snapshots" / commit, commit, ""};
  if (!has_configuration(found.folder)) return lacks("the model's config.json");
  if (request.weights) found.missing = missing_weights(found.folder);
  if (request.code && found.missing.empty()) found.missing = missing_code(found.folder);
  return found.missing.empty() ? found : lacks(found.missing);
}

Result<FoundModel> find_anywhere(const ModelRequest& request) {
  std::string name = request.name.native();
  bool is_folder = has_configuration(request.name);
  if (is_folder && !request.revision.empty()) {
    return fail(ErrorCode::kInvalidInput,
                format("{} is a folder, which has no revision {}", quoted(name, 1000), quoted(request.revision)),
                "leave --revision out, or name a model of the Hub by ORG/NAME");
  }
  if (is_folder) return FoundModel{request.name, "", ""};
  if (has_folder(request.name / "snapshots")) return find_snapshot(request.name, request.revision);
  if (has_folder(request.name)) {
    return fail(ErrorCode::kNotFound, format("there is no config.json in {}", quoted(name, 1000)),
                "give the folder of a transformers model");
  }
  if (is_hub_name(name)) return find_in_cache(request, name);
  return fail(ErrorCode::kNotFound, format("there is no folder {}", quoted(name, 1000)),
              "check the path, or name a model of the Hub by ORG/NAME");
}

}  // namespace

bool is_hub_name(std::string_view name) {
  size_t slash = name.find('/');
  if (slash == std::string_view::npos || !is_plain_relative_path(name)) return false;
  auto is_part = [](std::string_view part) {
    constexpr std::string_view kMarks = "-._";
    bool is_plain = std::all_of(part.begin(), part.end(), [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             kMarks.find(c) != std::string_view::npos;
    });
    // The Hub refuses doubled marks; a dash at the front would look like a flag to commands that get the name.
    return is_plain && part.size() <= kMaxNamePart && kMarks.find(part.front()) == std::string_view::npos &&
           part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos;
  };
  return is_part(name.substr(0, slash)) && is_part(name.substr(slash + 1));
}

Result<FoundModel> find_model(const ModelRequest& request) {
  ARGOSY_TRY(FoundModel found, find_anywhere(request));
  if (!found.folder.empty()) ARGOSY_TRY_STATUS(check_inside_folder(found.folder / "config.json", found.folder));
  return found;
}

}  // namespace argosy
