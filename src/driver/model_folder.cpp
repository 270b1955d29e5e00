#include "driver/model_folder.h"

#include <string>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "io/file.h"
#include "io/names.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxReference = 1024;

bool has_configuration(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored);
}

/// The snapshot of a repository in the Hub's cache that `main` refers to; the only one if nothing does.
Result<fs::path> snapshot_of(const fs::path& repository) {
  auto reference = read_text_file(repository / "refs" / "main", kMaxReference);
  if (reference) {
    std::string revision = *std::move(reference);
    while (!revision.empty() && revision.back() <= ' ') revision.pop_back();
    if (is_plain_relative_path(revision) && has_configuration(repository / "snapshots" / revision))
      return repository / "snapshots" / revision;
  }
  std::vector<fs::path> snapshots;
  std::error_code failure;
  for (fs::directory_iterator it(repository / "snapshots", failure), end; !failure && it != end;
       it.increment(failure)) {
    if (has_configuration(it->path())) snapshots.push_back(it->path());
  }
  if (snapshots.size() == 1) return snapshots[0];
  return fail(ErrorCode::kNotFound,
              format("{} has {} snapshots with a config.json", quoted(repository.native(), 1000), snapshots.size()),
              snapshots.empty() ? "download the model first" : "name one of them: …/snapshots/REVISION");
}

}  // namespace

Result<fs::path> model_folder(const fs::path& model, const fs::path& hub_cache) {
  std::error_code ignored;
  if (has_configuration(model)) return model;
  if (fs::is_directory(model / "snapshots", ignored)) return snapshot_of(model);
  if (fs::is_directory(model, ignored)) {
    return fail(ErrorCode::kNotFound, format("there is no config.json in {}", quoted(model.native(), 1000)),
                "give the folder of a transformers model");
  }
  std::string name = model.native();
  size_t slash = name.find('/');
  bool is_name = slash != std::string::npos && name.find('/', slash + 1) == std::string::npos;
  if (is_name && !hub_cache.empty() && is_plain_relative_path(name)) {
    fs::path repository = hub_cache / format("models--{}--{}", name.substr(0, slash), name.substr(slash + 1));
    if (fs::is_directory(repository / "snapshots", ignored)) return snapshot_of(repository);
  }
  return fail(ErrorCode::kNotFound, format("there is no folder {}", quoted(name, 1000)),
              is_name ? "check the path, or download the model first (hf download)" : "check the path");
}

}  // namespace argosy
