#include "stages.h"

#include <charconv>
#include <cmath>
#include <map>
#include <system_error>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "io/output.h"
#include "table.h"

namespace argosy::cli {
namespace {

constexpr uint64_t kMaxTimes = 1 << 20, kMaxConfiguration = 1 << 24;
constexpr size_t kMaxTimed = 1000;
constexpr std::string_view kAnyModel = "*";

using Times = std::map<std::string, double, std::less<>>;

std::string key_of(std::string_view kind, std::string_view model) { return format("{} {}", kind, model); }

/// Lines of "SECONDS KIND MODEL".
Times read_times(const std::filesystem::path& file) {
  Times times;
  auto text = read_text_file(file, kMaxTimes);
  if (!text) return times;
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    double seconds = 0;
    auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), seconds);
    auto used = static_cast<size_t>(end - line.data());
    if (error != std::errc() || used + 1 >= line.size() || !(seconds >= 0 && seconds < 1e6)) continue;
    times[std::string(line.substr(used + 1))] = seconds;
  }
  return times;
}

/// Not more exact than it is known.
std::string rounded(double seconds) {
  if (seconds < 10) return format("{:.0f} s", std::max(1.0, std::ceil(seconds)));
  if (seconds < 120) return format("{:.0f} s", std::round(seconds / 5) * 5);
  return format("{:.0f} min", std::ceil(seconds / 60));
}

}  // namespace

std::string model_in_words(const CaptureRequest& request) {
  constexpr const char* kUnknown = "the model";
  auto text = read_text_file(request.model / "config.json", kMaxConfiguration);
  auto document = text ? JsonDocument::parse(*text, "config.json")
                       : Result<JsonDocument>(fail(ErrorCode::kNotFound, "no configuration"));
  if (!document) return kUnknown;
  if (!request.task.empty()) {
    auto type = document->root().find("model_type").as_string();
    return format("{} for {}", type ? printable(*type) : kUnknown, request.task);
  }
  JsonView classes = document->root().find("architectures");
  if (!classes.is_array()) return kUnknown;
  for (JsonView each : classes.items()) {
    if (auto name = each.as_string()) return printable(*name);
  }
  return kUnknown;
}

std::string StageTimes::expected(std::string_view kind, std::string_view model) const {
  const Times times = read_times(file_);
  if (auto found = times.find(key_of(kind, model)); found != times.end())
    return format("about {}", rounded(found->second));
  auto found = times.find(key_of(kind, kAnyModel));
  return found == times.end() ? "" : format("the last one took {}", rounded(found->second));
}

void StageTimes::remember(std::string_view kind, std::string_view model, double seconds) const {
  Times times = read_times(file_);
  if (times.size() > kMaxTimed) times.clear();
  times[key_of(kind, model)] = times[key_of(kind, kAnyModel)] = seconds;
  std::string text;
  for (const auto& [key, value] : times) text += format("{:.1f} {}\n", value, key);
  auto file = OutputFile::create(file_, Overwrite::kReplace);
  if (file && file->write(text)) (void)file->commit();
}

std::string in_brackets(std::string_view first, std::string_view second) {
  if (first.empty() && second.empty()) return "";
  return format(" ({}{}{})", first, first.empty() || second.empty() ? "" : ", ", second);
}

}  // namespace argosy::cli
