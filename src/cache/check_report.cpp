#include "cache/check_report.h"

#include <source_hash.h>  // generated

#include <algorithm>
#include <limits>
#include <span>

#include "base/text.h"
#include "cache/capture_cache.h"
#include "io/file.h"
#include "io/json.h"
#include "tensor/sha256.h"

namespace argosy {
namespace {

constexpr std::string_view kFormat = "argosy-check";
constexpr int64_t kVersion = 1;
constexpr std::string_view kEngineRow = "engine";  // the row of a bundle whose engine is not there
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

/// "decode at 2x19 on 23 (edge): logits is off by 0.5"
std::string line_of(JsonView row) {
  std::string note = text_at(row, "note");
  return format("{} at {} ({}): {}", text_at(row, "component"), text_at(row, "shape"), text_at(row, "call"),
                note.empty() ? "differs" : note);
}

}  // namespace

Result<CheckReport> CheckReport::read(const std::filesystem::path& path) {
  std::string name = quoted(path.native(), 1000);
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxBytes));
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(std::move(text), name));
  JsonView root = document.root();
  if (text_at(root, "format") != kFormat)
    return fail(ErrorCode::kCorruptFile, format("{} is not the result of a check", name));
  if (root.find("version").as_integer() != kVersion) {
    return fail(ErrorCode::kUnsupportedVersion, format("{} is of a version that is not read", name),
                "argosy and its Python package must be of one version");
  }
  std::optional<bool> ok = root.find("ok").as_bool();
  JsonView rows = root.find("rows");
  if (!ok || !rows.is_array()) return fail(ErrorCode::kCorruptFile, format("{} lacks ok or rows", name));
  CheckReport report;
  report.ok = *ok;
  report.engine = text_at(root, "engine");
  report.model_class = text_at(root, "model_class");
  report.calls = rows.size();
  report.summary = text_at(root, "summary");
  report.unchecked = text_at(root, "unchecked");
  if (JsonView quality = root.find("quality"); quality.is_object()) {
    report.agreement = quality.find("agreement").as_double();
    report.divergence = quality.find("kl").as_double();
    report.least_cosine = quality.find("least_cosine").as_double();
    JsonWriter figures;
    figures.value(quality);
    report.quality = figures.take();
  }
  for (JsonView row : rows.items()) {
    JsonView largest = row.find("abs");
    if (largest.is_valid() && !largest.is_null()) {
      report.largest = std::max(report.largest, largest.as_double().value_or(std::numeric_limits<double>::infinity()));
    }
    if (row.find("ok").as_bool() == false) report.wrong.push_back(line_of(row));
    if (text_at(row, "call") == kEngineRow && row.find("ok").is_null()) report.engine_missing = text_at(row, "note");
  }
  return report;
}

Result<std::string> twin_check_key(const std::filesystem::path& capture, std::string_view backend,
                                   std::string_view options) {
  ARGOSY_TRY(std::string hash, hash_of_file(capture));
  std::string text = format("{} {}\n{}\n{}\n{}\n{}", kFormat, kVersion, kSourceHash, backend, options, hash);
  return sha256_hex(std::as_bytes(std::span(text)));
}

std::string_view source_hash() { return kSourceHash; }

}  // namespace argosy
