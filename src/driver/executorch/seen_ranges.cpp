#include "driver/executorch/seen_ranges.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxRangesBytes = uint64_t{64} << 20;
constexpr int64_t kRangesVersion = 1;

/// [least, most], finite.
std::optional<std::pair<double, double>> read_range(JsonView list) {
  std::vector<double> numbers;
  for (JsonView each : list.items()) numbers.push_back(each.as_double().value_or(std::nan("")));
  if (numbers.size() != 2 || !std::isfinite(numbers[0]) || !std::isfinite(numbers[1]) || numbers[0] > numbers[1])
    return std::nullopt;
  return std::pair(numbers[0], numbers[1]);
}

/// Passes find layers by words of a line.
bool is_word(std::string_view name) {
  return !name.empty() && std::ranges::none_of(name, [](unsigned char c) { return c <= ' ' || c == 127; });
}

}  // namespace

Result<executorch::ActivationRanges> read_seen_ranges(const std::filesystem::path& path) {
  const std::string name = quoted(path.native(), 1000);
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxRangesBytes));
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(text), name));
  JsonView root = document.root();
  if (text_at(root, "format") != "argosy-seen-ranges" || root.find("version").as_integer() != kRangesVersion) {
    return fail(ErrorCode::kInvalidInput, format("{} does not tell of ranges that were seen", name),
                "--calibrate has them seen, and so does python -m argosy.check.ranges");
  }
  executorch::ActivationRanges ranges;
  for (auto [layer, seen] : root.find("layers").members()) {
    auto input = read_range(seen.find("input")), output = read_range(seen.find("output"));
    if (!input || !output || !is_word(layer)) {
      return fail(ErrorCode::kInvalidInput, format("{} has no ranges for {}", name, quoted(layer)),
                  "have the ranges seen anew");
    }
    ranges[std::string(layer)] = {input->first, input->second, output->first, output->second};
  }
  if (ranges.empty())
    return fail(ErrorCode::kInvalidInput, format("{} has no layers", name), "have the ranges seen anew");
  return ranges;
}

}  // namespace argosy
