#include "engines/sentence_modules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"

namespace argosy::engines {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxFile = uint64_t{1} << 20;

/// The model itself, and modules that do nothing in evaluation.
constexpr std::array<std::string_view, 2> kNothingBehind = {"Transformer", "Dropout"};

/// Settings of a Pooling module, and the names of their poolings.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kPoolings = {{
    {"pooling_mode_cls_token", "first token"},
    {"pooling_mode_lasttoken", "last token"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean by the root of the length"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_weightedmean_tokens", "weighted mean"},
}};

std::optional<JsonDocument> parsed(const fs::path& path) {
  Result<std::string> text = read_text_file(path, kMaxFile);
  if (!text) return std::nullopt;
  Result<JsonDocument> document = JsonDocument::parse_owned(*std::move(text), path.filename().string());
  if (!document) return std::nullopt;
  return *std::move(document);
}

/// "sentence_transformers.models.Pooling" is a Pooling.
std::string_view class_name(std::string_view type) {
  size_t dot = type.rfind('.');
  return dot == std::string_view::npos ? type : type.substr(dot + 1);
}

/// What a module does, as far as its configuration says it; may be empty.
std::string details(const fs::path& folder, std::string_view path) {
  fs::path inside(path);
  if (path.empty() || inside.is_absolute() || std::ranges::find(inside, fs::path("..")) != inside.end()) return {};
  std::optional<JsonDocument> document = parsed(folder / inside / "config.json");
  if (!document) return {};
  JsonView config = document->root();
  std::vector<std::string> found;
  for (auto [key, text] : kPoolings) {
    if (config.find(key).as_bool().value_or(false)) found.emplace_back(text);
  }
  if (auto mode = config.find("pooling_mode").as_string()) found.push_back(quoted(*mode, 40));
  auto from = config.find("in_features").as_integer(), to = config.find("out_features").as_integer();
  if (from && to) found.push_back(format("{} to {} features, {}", *from, *to, quoted(path, 40)));
  return join(found, ", ");
}

}  // namespace

std::string left_out_modules(const fs::path& folder) {
  std::error_code failure;
  if (folder.empty() || !fs::is_regular_file(folder / "modules.json", failure)) return {};
  std::optional<JsonDocument> document = parsed(folder / "modules.json");
  if (!document) return "modules.json cannot be read; what it puts behind the model is not part of the export";
  std::vector<std::string> modules;
  for (JsonView module : document->root().items()) {
    std::string_view name = class_name(module.find("type").as_string().value_or(""));
    if (name.empty() || std::ranges::find(kNothingBehind, name) != kNothingBehind.end()) continue;
    std::string more = details(folder, module.find("path").as_string().value_or(""));
    modules.push_back(more.empty() ? quoted(name, 40) : format("{} ({})", quoted(name, 40), more));
  }
  if (modules.empty()) return {};
  return format("modules.json puts {} behind the model; that is not part of the export: apply it to the outputs",
                join(modules, ", then "));
}

}  // namespace argosy::engines
