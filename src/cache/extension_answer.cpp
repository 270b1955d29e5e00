#include "cache/extension_answer.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/system.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxAnswer = uint64_t{16} << 20;
constexpr uint64_t kAnswerVersion = 1;

/// In nanoseconds; 0 if it is not there.
uint64_t modified(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return 0;
  system::Time time = system::modified(found);
  return static_cast<uint64_t>(time.seconds) * 1'000'000'000 + static_cast<uint64_t>(time.nanoseconds);
}

/// Whether nothing that an answer of argosy.extensions rests on has changed.
bool is_current(JsonView answer) {
  JsonView watched = answer.find("watched");
  if (answer.find("version").as_unsigned() != kAnswerVersion || !watched.is_array()) return false;
  for (JsonView each : watched.items()) {
    auto path = each.find("path").as_string();
    if (!path || each.find("modified").as_unsigned() != modified(std::string(*path))) return false;
  }
  return true;
}

std::string text_of(JsonView answer) {
  std::string text;
  JsonView extensions = answer.find("extensions");
  if (!extensions.is_array()) return text;
  for (JsonView each : extensions.items()) {
    for (const char* key : {"name", "value", "package", "version", "hash"})
      text += format("{}\n", each.find(key).as_string().value_or(""));
  }
  return text;
}

}  // namespace

fs::path extension_answers(const fs::path& cache) { return cache / "extensions"; }

std::optional<std::string> extensions_of_answer(std::string_view answer) {
  auto document = JsonDocument::parse(answer, "extensions");
  if (!document || document->root().find("version").as_unsigned() != kAnswerVersion) return std::nullopt;
  return text_of(document->root());
}

std::optional<std::string> remembered_extensions(const fs::path& path) {
  auto text = read_text_file(path, kMaxAnswer);
  if (!text) return std::nullopt;
  auto document = JsonDocument::parse_owned(*std::move(text), "extensions");
  if (!document || !is_current(document->root())) return std::nullopt;
  return text_of(document->root());
}

std::vector<std::string> all_remembered_extensions(const fs::path& cache) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(extension_answers(cache), ignored)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> texts = {""};
  for (const fs::path& path : paths) {
    auto text = remembered_extensions(path);
    if (text && std::ranges::find(texts, *text) == texts.end()) texts.push_back(*std::move(text));
  }
  return texts;
}

}  // namespace argosy
