// The functions of the public headers. Packages carry this file, for the compiler of whoever uses them.
#include "api/functions.h"
#include "argosy/cache.h"
#include "argosy/inspect.h"

namespace argosy {
inline namespace v1 {

Result<CachedModel> open_cached(const CacheRequest& request) {
  ARGOSY_TRY(api::CachedFiles files, api::find_cached(request));
  CachedModel model;
  ARGOSY_TRY(model.capture, Capture::open(files.capture));
  ARGOSY_TRY(model.checkpoint, Checkpoint::open(request.model));
  model.weight_plan = files.weight_plan;
  return model;
}

Result<std::string> inspect_file(const std::filesystem::path& path, const std::filesystem::path& schemas) {
  return api::inspect(path, schemas);
}

Result<LintReport> lint_bundle(const std::filesystem::path& folder, const std::string& engine) {
  return api::lint(folder, engine);
}

Result<BundleDescription> read_bundle(const std::filesystem::path& folder) { return api::describe_bundle(folder); }

}  // namespace v1
}  // namespace argosy
