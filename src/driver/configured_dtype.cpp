#include "driver/configured_dtype.h"

#include <string_view>

#include "base/text.h"
#include "cache/capture_key.h"
#include "io/file.h"
#include "io/json.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxConfigurationBytes = uint64_t{16} << 20;

/// transformers 5 writes "dtype", older versions "torch_dtype".
std::string_view dtype_in(JsonView config) {
  for (std::string_view key : {"dtype", "torch_dtype"}) {
    if (auto text = config.find(key).as_string()) return text->starts_with("torch.") ? text->substr(6) : *text;
  }
  return {};
}

}  // namespace

Result<std::string> configured_dtype(const std::filesystem::path& model) {
  std::filesystem::path path = model / "config.json";
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxConfigurationBytes));
  std::string name = quoted(path.native(), 1000);
  // In its canonical form, since what Python writes need not be JSON.
  ARGOSY_TRY(std::string canonical, canonical_configuration(text, name));
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(canonical), name));
  if (std::string_view own = dtype_in(document.root()); !own.empty()) return std::string(own);
  for (auto [key, member] : document.root().members()) {
    if (!key.ends_with("_config") || !member.is_object()) continue;
    if (std::string_view part = dtype_in(member); !part.empty()) return std::string(part);
  }
  return std::string("float32");
}

}  // namespace argosy
