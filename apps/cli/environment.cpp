#include <cctype>
#include <cstdlib>
#include <string>

#include "options.h"

namespace argosy::cli {
namespace {

/// Empty if the variable is not set or empty.
std::filesystem::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A variable of the Hub's, which takes ~ for the home folder as huggingface_hub does.
std::filesystem::path hub_variable(const char* name) {
  std::string value = variable(name).native();
  return value.starts_with("~/") ? variable("HOME") / value.substr(2) : std::filesystem::path(value);
}

/// As huggingface_hub reads its switches.
bool is_on(const char* name) {
  std::string value = variable(name).native();
  for (char& c : value) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

/// Folders of the path may be relative to the one that the program is started in.
std::string python_paths() {
  std::string text;
  for (const char* name : {"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "HOME"})
    text += variable(name).native() + '\n';
  std::error_code ignored;
  if (!variable("PYTHONPATH").empty()) text += std::filesystem::current_path(ignored).native();
  return text;
}

}  // namespace

Environment read_environment() {
  Environment environment;
  // By the XDG rules a relative path is to be ignored.
  std::filesystem::path base = variable("XDG_CACHE_HOME");
  if (!base.is_absolute()) base = variable("HOME") / std::filesystem::path(".cache");
  environment.cache = variable("ARGOSY_CACHE");
  if (environment.cache.empty()) environment.cache = base / "argosy";
  environment.registry.location = variable("ARGOSY_REGISTRY").native();
  environment.trusted_keys = variable("ARGOSY_REGISTRY_KEYS");
  if (environment.trusted_keys.empty()) {
    std::filesystem::path settings = variable("XDG_CONFIG_HOME");
    if (!settings.is_absolute()) settings = variable("HOME") / std::filesystem::path(".config");
    environment.trusted_keys = settings / "argosy/registry-keys.txt";
  }
  environment.python = variable("ARGOSY_PYTHON");
  environment.python_paths = python_paths();
  environment.hub_cache = hub_variable("HF_HUB_CACHE");
  if (environment.hub_cache.empty()) {
    std::filesystem::path home = hub_variable("HF_HOME");
    environment.hub_cache = (home.empty() ? base / "huggingface" : home) / "hub";
  }
  environment.offline = is_on(variable("HF_HUB_OFFLINE").empty() ? "TRANSFORMERS_OFFLINE" : "HF_HUB_OFFLINE");
  environment.schemas = variable("ARGOSY_SCHEMAS");
  if (environment.schemas.empty()) environment.schemas = environment.cache / "op_schemas.txt";
  return environment;
}

bool wants_colours() { return variable("NO_COLOR").empty() && variable("TERM") != "dumb"; }

}  // namespace argosy::cli
