#include <cstdlib>

#include "options.h"

namespace argosy::cli {
namespace {

/// Empty if the variable is not set or empty.
std::filesystem::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Environment read_environment() {
  Environment environment;
  // By the XDG rules a relative path is to be ignored.
  std::filesystem::path base = variable("XDG_CACHE_HOME");
  if (!base.is_absolute()) base = variable("HOME") / std::filesystem::path(".cache");
  environment.cache = variable("ARGOSY_CACHE");
  if (environment.cache.empty()) environment.cache = base / "argosy";
  environment.python = variable("ARGOSY_PYTHON");
  environment.hub_cache = variable("HF_HUB_CACHE");
  if (environment.hub_cache.empty()) {
    std::filesystem::path home = variable("HF_HOME");
    environment.hub_cache = (home.empty() ? base / "huggingface" : home) / "hub";
  }
  environment.schemas = variable("ARGOSY_SCHEMAS");
  if (environment.schemas.empty()) environment.schemas = environment.cache / "op_schemas.txt";
  return environment;
}

}  // namespace argosy::cli
