#include "driver/onnx/seen_values.h"

#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "io/json.h"

namespace argosy {
namespace {

constexpr uint64_t kMaxSeenBytes = uint64_t{64} << 20;
constexpr int64_t kSeenVersion = 1;

}  // namespace

Result<std::shared_ptr<const onnx::SeenValues>> read_seen_values(const std::filesystem::path& path) {
  const std::string name = quoted(path.native(), 1000);
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxSeenBytes));
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(text), name));
  JsonView root = document.root();
  if (text_at(root, "format") != "argosy-seen-values" || root.find("version").as_integer() != kSeenVersion) {
    return fail(ErrorCode::kInvalidInput, format("{} does not tell of values that were seen", name),
                "--calibrate has them seen, and so does python -m argosy.check.seen");
  }
  onnx::SeenValues seen;
  for (auto [graph, values] : root.find("graphs").members()) {
    std::map<std::string, double>& found = seen[std::string(graph)];
    for (auto [value, largest] : values.members()) {
      auto number = largest.as_double();
      if (!number || *number < 0) {
        return fail(ErrorCode::kInvalidInput, format("{} has no magnitude for {}", name, quoted(value)),
                    "have the values seen anew");
      }
      found[std::string(value)] = *number;
    }
  }
  return std::make_shared<const onnx::SeenValues>(std::move(seen));
}

}  // namespace argosy
