#include "driver/earlier_bundle.h"

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "driver/variants.h"
#include "engines/engine.h"
#include "io/file.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnew = "export all variants anew, to another folder or without --add";

/// Members of a manifest that are the same for all variants of a bundle, and what it means if they differ.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kShared = {{
    {"engine", "for another engine"},
    {"source", "of another model"},
    {"model_class", "of another class of model"},
    {"task", "for another task"},
    {"configuration_hash", "of a model with another configuration"},
    {"device", "for another device"},
    {"argosy", "by another version of argosy"},
    {"versions", "with other versions of torch or transformers"},
    {"components", "of graphs with other inputs or outputs"},
    {"wiring", "of graphs that feed each other otherwise"},
}};

tl::unexpected<Error> not_addable(const fs::path& folder, std::string_view why, const char* hint = kAnew) {
  return fail(ErrorCode::kInvalidInput, format("{} {}", quoted(folder.native(), 1000), why), hint);
}

std::string text_of(JsonView value) {
  if (!value.is_valid()) return "";
  JsonWriter json;
  json.value(value);
  return json.take();
}

/// What was asked for besides the variants themselves.
std::vector<std::string> shared_options(JsonView manifest) {
  std::vector<std::string> options;
  for (JsonView each : manifest.find("options").items()) {
    std::string option(each.as_string().value_or(""));
    bool is_of_variant = option.starts_with("--dtype=") || option.starts_with("--quantize") || option == kMixedFlag;
    if (!is_of_variant) options.push_back(std::move(option));
  }
  return options;
}

/// The value of an option of a manifest; empty: it is not there.
std::string option_of(JsonView manifest, std::string_view flag) {
  for (JsonView each : manifest.find("options").items()) {
    std::string_view option = each.as_string().value_or("");
    if (option.starts_with(flag) && option.substr(flag.size()).starts_with("="))
      return std::string(option.substr(flag.size() + 1));
  }
  return "";
}

/// The dtype that graphs return, where the command line did not name one.
std::string returned_dtype(JsonView manifest) {
  for (JsonView component : manifest.find("components").items()) {
    for (JsonView output : component.find("outputs").items()) {
      std::string dtype = text_at(output, "dtype");
      if (dtype == "f16") return "float16";
      if (dtype == "bf16") return "bfloat16";
    }
  }
  return "float32";
}

/// The variant that a bundle is which was exported alone.
std::optional<std::string> only_variant(JsonView manifest) {
  std::string dtype = option_of(manifest, "--dtype"), quantize = option_of(manifest, "--quantize");
  if (dtype.empty()) dtype = returned_dtype(manifest);
  bool is_mixed = false;
  for (JsonView each : manifest.find("options").items()) is_mixed = is_mixed || each.as_string() == kMixedFlag;
  for (const Variant& each : all_variants()) {
    if (each.dtype == dtype && each.is_mixed == is_mixed && quantize == each.quantize) return std::string(each.name);
  }
  return std::nullopt;
}

Result<std::vector<EarlierVariant>> variants_of_folders(const fs::path& folder, JsonView manifest,
                                                        std::string_view engine) {
  std::vector<EarlierVariant> found;
  for (JsonView each : manifest.find("folders").items()) {
    std::string name(each.as_string().value_or(""));
    if (find_variant(name) == nullptr)
      return not_addable(folder, format("has a folder {} of no variant", quoted(name)));
    ARGOSY_TRY(JsonDocument own, read_bundle_manifest(folder / name));
    if (text_at(own.root(), "engine") != engine)
      return not_addable(folder, format("is for {}, not for {}", quoted(text_at(own.root(), "engine")), engine));
    found.push_back({name, read_check(own.root())});
  }
  if (found.empty()) return not_addable(folder, "lists no variants");
  return found;
}

}  // namespace

Result<JsonDocument> read_bundle_manifest(const fs::path& folder) {
  ARGOSY_TRY(std::string text, read_text_file(folder / kBundleManifest, kMaxManifest));
  return JsonDocument::parse_owned(std::move(text), (folder / kBundleManifest).native());
}

ExportCheck read_check(JsonView manifest) {
  JsonView check = manifest.find("check");
  ExportCheck found{text_at(check, "kind"), text_at(check, "why"), text_at(check, "compared")};
  found.quality = text_of(check.find("quality"));
  return found;
}

Result<std::vector<EarlierVariant>> read_earlier_variants(const fs::path& folder, std::string_view engine) {
  std::error_code ignored;
  if (!fs::exists(folder / kBundleManifest, ignored))
    return not_addable(folder, "has no bundle that a variant could be added to",
                       "name one that argosy export onnx wrote, or leave out --add");
  ARGOSY_TRY(JsonDocument document, read_bundle_manifest(folder));
  JsonView manifest = document.root();
  const std::string kind = text_at(manifest, "format");
  const engines::Engine* known = engines::find_engine(engine);
  const bool is_one_bundle = known != nullptr && known->limits.has_variants;
  if (kind == "argosy-variants") return variants_of_folders(folder, manifest, engine);
  if (kind != "argosy-onnx") return not_addable(folder, "is no bundle of argosy export onnx");
  if (text_at(manifest, "engine") != engine)
    return not_addable(folder, format("is for {}, not for {}", quoted(text_at(manifest, "engine")), engine));
  if (!is_one_bundle) {
    return not_addable(folder, "is itself a bundle of one variant, and the engine wants a folder for each",
                       "export several variants at once (--dtype fp32,q4); others can be added to those");
  }
  std::vector<EarlierVariant> found;
  for (JsonView each : manifest.find("variants").items()) found.push_back({text_at(each, "name"), read_check(each)});
  if (!found.empty()) return found;
  std::optional<std::string> name = only_variant(manifest);
  if (!name) return not_addable(folder, "stores its weights in a way that is no variant");
  return std::vector<EarlierVariant>{{*std::move(name), read_check(manifest)}};
}

Status check_same_making(JsonView earlier, JsonView made, const fs::path& folder) {
  for (auto [key, what] : kShared) {
    if (text_of(earlier.find(key)) != text_of(made.find(key)))
      return not_addable(folder, format("was made {} ({} of {} differs)", what, key, kBundleManifest));
  }
  std::vector<std::string> before = shared_options(earlier), now = shared_options(made);
  if (before != now) {
    return not_addable(folder, format("was made with other options: {} instead of {}", quoted(join(before, " "), 300),
                                      quoted(join(now, " "), 300)));
  }
  return {};
}

Status keep_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (error) return fail(system_error("create", to.parent_path(), error.value()));
  fs::create_hard_link(from, to, error);
  if (!error) return {};
  fs::copy_file(from, to, error);
  if (error) return fail(system_error("copy", from, error.value()));
  fs::file_time_type time = fs::last_write_time(from, error);
  if (!error) fs::last_write_time(to, time, error);
  return error ? Status(fail(system_error("copy the time of", from, error.value()))) : Status();
}

}  // namespace argosy
