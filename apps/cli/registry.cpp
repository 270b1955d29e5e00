#include "registry.h"

#include "base/text.h"
#include "cache/cache_contents.h"
#include "cache/capture_key.h"
#include "io/file.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxReadConfiguration = uint64_t{16} << 20;

/// The message, what it is about, and what to do, as a warning has them.
std::string in_a_line(const Error& error) {
  std::string text = error.message;
  for (const ErrorFrame& frame : error.frames) text += format(", in {}", frame.what);
  if (!error.hint.empty()) text += format(" ({})", error.hint);
  return text;
}

Result<bool> fetch(const CacheWork& work, const FitsRequest& fits, const fs::path& output,
                   const Environment& environment, Terminal& terminal) {
  ARGOSY_TRY(Registry registry, open_registry(environment));
  ARGOSY_TRY(std::optional<RegistryIndex> index, registry.find(work.kind, work.key));
  if (!index) {
    terminal.log(LogLevel::kInfo, format("the registry {} has nothing under {}", registry.location(), work.key));
    return false;
  }
  ARGOSY_TRY_STATUS(registry.fetch(*index, output));
  if (Status fitting = fits(output); !fitting)
    return fail(std::move(fitting.error().in(format("the registry {}", registry.location()))));
  terminal.log(LogLevel::kInfo, format("from the registry {}: {}", registry.location(),
                                       cache_name(work.kind, work.key.substr(0, kShownDigits),
                                                  index->entries[0].hash.substr(0, kShownDigits))));
  return true;
}

}  // namespace

Environment with_registry(const Environment& environment, const RegistryOptions& options) {
  Environment changed = environment;
  if (!options.location.empty()) changed.registry.location = options.location;
  changed.registry.keys.insert(changed.registry.keys.end(), options.keys.begin(), options.keys.end());
  return changed;
}

Result<Registry> open_registry(const Environment& environment) {
  const RegistryOptions& wanted = environment.registry;
  if (wanted.location.empty())
    return fail(ErrorCode::kInvalidInput, "no registry is named", "add --registry, or set ARGOSY_REGISTRY");
  ARGOSY_TRY(std::vector<PublicKey> trusted, read_trusted_keys(environment.trusted_keys));
  for (const std::string& text : wanted.keys) {
    ARGOSY_TRY(PublicKey key, PublicKey::parse(text));
    trusted.push_back(key);
  }
  if (trusted.empty()) {
    return fail(ErrorCode::kInvalidInput,
                format("no key is trusted, so the registry {} is not asked", quoted(wanted.location, 1000)),
                format("add --registry-key, or a line to {}", quoted(environment.trusted_keys.native(), 1000)));
  }
  ARGOSY_TRY(std::unique_ptr<RegistrySource> source, open_registry_source(wanted.location));
  return Registry(std::move(source), std::move(trusted), environment.cache / "registry");
}

void ask_registry(CacheWork& work, const FitsRequest& fits, const Environment& environment, Terminal& terminal) {
  if (environment.registry.location.empty()) return;
  work.fetch = [&work, fits, &environment, &terminal](const fs::path& output) {
    return fetch(work, fits, output, environment, terminal);
  };
  work.on_refused = [&terminal](const Error& error) {
    terminal.log(LogLevel::kWarn, format("the registry is not used: {}", in_a_line(error)));
  };
}

Status check_configuration(const fs::path& capture, const fs::path& model) {
  const fs::path path = model / "config.json";
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxReadConfiguration));
  ARGOSY_TRY(std::string wanted, canonical_configuration(text, quoted(path.native(), 1000)));
  ARGOSY_TRY(std::string stored, capture_configuration(capture));
  ARGOSY_TRY(std::string found, canonical_configuration(stored, "the capture's configuration"));
  if (found == wanted) return {};
  return fail(ErrorCode::kCorruptFile, "the capture is of another configuration than this model's");
}

}  // namespace argosy::cli
