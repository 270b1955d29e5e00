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
  environment.cache = variable("ARGOSY_CACHE");
  if (environment.cache.empty()) {
    // By the XDG rules a relative path is to be ignored.
    std::filesystem::path base = variable("XDG_CACHE_HOME");
    if (!base.is_absolute()) base = variable("HOME") / std::filesystem::path(".cache");
    environment.cache = base / "argosy";
  }
  environment.schemas = variable("ARGOSY_SCHEMAS");
  if (environment.schemas.empty()) environment.schemas = environment.cache / "op_schemas.txt";
  return environment;
}

}  // namespace argosy::cli
