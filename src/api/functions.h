#pragma once

#include <filesystem>
#include <string>

#include "argosy/bundle.h"
#include "argosy/cache_request.h"
#include "argosy/lint.h"
#include "base/result.h"

/// What public functions call: here the library's own, in a package over its shared library (apps/library/client.cpp).
namespace argosy::api {

/// Files of the cache.
struct CachedFiles {
  std::string capture, weight_plan;
};
Result<CachedFiles> find_cached(const CacheRequest& request);

Result<std::string> inspect(const std::filesystem::path& path, const std::filesystem::path& schemas);
Result<LintReport> lint(const std::filesystem::path& folder, const std::string& engine);
Result<BundleDescription> describe_bundle(const std::filesystem::path& folder);

}  // namespace argosy::api
