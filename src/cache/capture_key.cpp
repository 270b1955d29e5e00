#include "cache/capture_key.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "cache/capture_cache.h"
#include "frontends/capture/capture.h"
#include "frontends/capture/weight_plan.h"
#include "io/file.h"
#include "io/inside_folder.h"
#include "io/json.h"
#include "tensor/sha256.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxConfiguration = uint64_t{16} << 20;
constexpr uint64_t kMaxCode = uint64_t{64} << 20;
// One more whenever captures that were made before are no longer to be used, though they can be read.
// 2: states of layers that the twin lacks were of fixed size. 4: tied weights were one. 5: guards were dropped.
// 7: lengths of sounds were fixed by numbers that code made of them. 8: ranges had sizes in between that are not right.
constexpr int64_t kCaptureRevision = 8;

// Where the model came from, and what wrote its configuration down: no model's code looks at them. And how its
// checkpoint stores weights, which weight plans follow: captures are those of the float model.
constexpr std::array<std::string_view, 5> kIgnored = {"_name_or_path", "_commit_hash", "transformers_version",
                                                      "quantization_config", "compression_config"};
constexpr std::span<const std::string_view> kIgnoredByPlans = std::span(kIgnored).first(3);

std::string hash_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

/// Python writes NaN, Infinity and -Infinity bare, which is no JSON. They become the object that newer versions of
/// transformers write for them.
std::string with_special_numbers(std::string_view text) {
  std::string result;
  bool is_inside_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (is_inside_text) {
      if (c == '\\' && i + 1 < text.size()) result += text[i++];
      is_inside_text = c != '"';
      result += text[i];
      continue;
    }
    is_inside_text = c == '"';
    std::string_view special;
    for (std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (text.substr(i).starts_with(word)) special = word;
    }
    if (special.empty()) {
      result += c;
      continue;
    }
    result += format("{{\"__float__\":\"{}\"}}", special);
    i += special.size() - 1;
  }
  return result;
}

void write_canonical(JsonWriter& writer, JsonView value, std::span<const std::string_view> ignored) {
  if (value.is_array()) {
    writer.begin_array();
    for (JsonView item : value.items()) write_canonical(writer, item, ignored);
    writer.end_array();
    return;
  }
  if (!value.is_object()) {
    writer.value(value);
    return;
  }
  std::vector<std::pair<std::string_view, JsonView>> members;
  for (auto [key, member] : value.members()) members.emplace_back(key, member);
  std::ranges::stable_sort(members, {}, [](const auto& member) { return member.first; });
  writer.begin_object();
  for (size_t i = 0; i < members.size(); ++i) {
    // Of two members of one name Python takes the last.
    if (i + 1 < members.size() && members[i + 1].first == members[i].first) continue;
    if (std::ranges::find(ignored, members[i].first) != ignored.end()) continue;
    writer.key(members[i].first);
    write_canonical(writer, members[i].second, ignored);
  }
  writer.end_object();
}

Result<JsonDocument> parse_configuration(std::string_view text, std::string_view name) {
  ARGOSY_TRY(JsonDocument document, JsonDocument::parse_owned(with_special_numbers(text), name));
  if (!document.root().is_object()) return fail(ErrorCode::kCorruptFile, format("{} is not a JSON object", name));
  return document;
}

/// Names and contents of the Python files of a folder.
Result<std::string> hash_of_code(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    if (it->path().extension() == ".py") files.push_back(it->path());
  }
  if (failure) return fail(system_error("list", folder, failure.value()));
  std::ranges::sort(files);
  Sha256 hash;
  for (const fs::path& path : files) {
    ARGOSY_TRY_STATUS(check_inside_folder(path, folder));
    ARGOSY_TRY(std::string text, read_text_file(path, kMaxCode));
    std::string head = format("{}\n{}\n", path.filename().string(), text.size());
    hash.add(std::as_bytes(std::span(head)));
    hash.add(std::as_bytes(std::span(text)));
  }
  return hash.hex();
}

/// Everything that decides what a capture holds, as JSON.
Result<std::string> request_text(const CaptureRequest& request, std::span<const std::string_view> ignored) {
  fs::path path = request.model / "config.json";
  ARGOSY_TRY(std::string text, read_text_file(path, kMaxConfiguration));
  ARGOSY_TRY(JsonDocument document, parse_configuration(text, quoted(path.native(), 1000)));
  JsonWriter writer;
  writer.begin_object();
  writer.key("format").value(kCaptureVersion);
  writer.key("revision").value(kCaptureRevision);
  writer.key("task").value(request.task);
  writer.key("shape").value(request.shape);
  writer.key("variant").value(request.variant);
  writer.key("prefill").value(request.prefill);
  if (!request.inputs.empty()) {
    writer.key("inputs").begin_array();
    for (const fs::path& file : request.inputs) {
      ARGOSY_TRY(std::string hash, hash_of_file(file));
      writer.value(hash);
    }
    writer.end_array();
  }
  if (!request.extensions.empty()) writer.key("extensions").value(request.extensions);
  if (request.dtype != "auto") writer.key("dtype").value(request.dtype);
  if (document.root().find("auto_map").is_valid()) {
    ARGOSY_TRY(std::string code, hash_of_code(request.model));
    writer.key("code").value(code);
    writer.key("trusted").value(request.trust_remote_code);
  }
  writer.key("configuration");
  write_canonical(writer, document.root(), ignored);
  writer.end_object();
  return writer.take();
}

Result<std::string> adapter_settings(const fs::path& folder) {
  return read_text_file(folder / "adapter_config.json", kMaxConfiguration);
}

}  // namespace

std::span<const std::string_view> ignored_configuration_fields() { return kIgnored; }

Result<std::string> canonical_configuration(std::string_view text, std::string_view name) {
  ARGOSY_TRY(JsonDocument document, parse_configuration(text, name));
  JsonWriter writer;
  write_canonical(writer, document.root(), kIgnored);
  return writer.take();
}

Result<std::string> capture_key(const CaptureRequest& request) {
  ARGOSY_TRY(std::string text, request_text(request, kIgnored));
  return hash_of(text);
}

CaptureRequest for_weight_plan(CaptureRequest request) {
  request.shape.clear();
  request.variant.clear();
  request.inputs.clear();
  request.prefill = false;
  return request;
}

Result<std::string> weight_plan_key(const CaptureRequest& request, const Checkpoint& checkpoint) {
  ARGOSY_TRY(std::string text, request_text(request, kIgnoredByPlans));
  if (!request.adapter.empty()) {
    ARGOSY_TRY(std::string settings, adapter_settings(request.adapter));
    text += format("\n{}", settings);
  }
  for (const auto& [name, folder] : request.adapters_apart) {
    ARGOSY_TRY(std::string settings, adapter_settings(folder));
    text += format("\n{}={}\n{}", name, settings.size(), settings);
  }
  return hash_of(format("{}\n{}\n{}\n{}", kWeightPlanVersion, request.dtype, headers_hash(checkpoint), text));
}

}  // namespace argosy
