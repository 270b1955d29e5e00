#include "frontends/capture/capture.h"

#include <unordered_map>

#include "base/text.h"
#include "frontends/capture/interface.h"
#include "frontends/capture/own_ops.h"
#include "frontends/capture/samples.h"
#include "frontends/capture/stored_tensors.h"
#include "frontends/capture/ties.h"
#include "frontends/pt2/graph_json.h"
#include "frontends/pt2/json_field.h"

namespace argosy {
namespace {

constexpr std::string_view kManifest = "capture.json";
constexpr std::string_view kConstants = "constants.safetensors", kSamples = "samples.safetensors";
constexpr uint64_t kMaxManifest = uint64_t{64} << 20;
constexpr size_t kMaxComponents = 1000;

class CaptureReader {
 public:
  CaptureReader(const ZipReader& zip, Diagnostics* diagnostics) : zip_(zip), diagnostics_(diagnostics) {}

  Result<Program> read() {
    ARGOSY_TRY(JsonDocument document, parse_entry(kManifest, kMaxManifest));
    JsonField root(document.root(), "");
    ARGOSY_TRY_STATUS(root.require_object());
    ARGOSY_TRY_STATUS(check_version(root));
    ARGOSY_TRY(constants_, StoredTensors::read(zip_, kConstants));
    ARGOSY_TRY(samples_, StoredTensors::read(zip_, kSamples));
    ARGOSY_TRY_STATUS(read_schemas(root));
    keep_attributes(root);
    ARGOSY_TRY_STATUS(read_own_ops(root, program_));
    ARGOSY_TRY(ties_, Ties::of(program_));
    JsonField components = root.member("components");
    ARGOSY_TRY_STATUS(components.require_array());
    if (components.view().size() == 0) return components.error("no component");
    if (components.view().size() > kMaxComponents) return components.error("too many components");
    int64_t index = 0;
    for (JsonView item : components.view().items()) {
      JsonField component = components.item(item, index++);
      ARGOSY_TRY_STATUS(read_component(component));
    }
    return std::move(program_);
  }

 private:
  Result<JsonDocument> parse_entry(std::string_view name, uint64_t max_bytes) const {
    const ZipEntry* entry = zip_.find(name);
    if (entry == nullptr) return fail(ErrorCode::kCorruptFile, format("the capture has no entry {}", quoted(name)));
    ARGOSY_TRY(std::string text, zip_.read(*entry, max_bytes));
    return JsonDocument::parse_owned(std::move(text), name);
  }

  static Status check_version(const JsonField& root) {
    JsonField name = root.member("format");
    ARGOSY_TRY(std::string_view format_name, name.string());
    if (format_name != "argosy-capture")
      return name.error(format("expected \"argosy-capture\", found {}", quoted(format_name)));
    ARGOSY_TRY(int64_t version, root.member("version").integer());
    if (version == kCaptureVersion) return {};
    return fail(ErrorCode::kUnsupportedVersion,
                format("capture format {} is not read, only {}", version, kCaptureVersion),
                version > kCaptureVersion ? "a newer argosy wrote it: update this one, or capture again"
                                          : "capture the model again");
  }

  Status read_schemas(const JsonField& root) {
    JsonField schemas = root.member("schemas");
    ARGOSY_TRY_STATUS(schemas.require_array());
    int64_t index = 0;
    for (JsonView item : schemas.view().items()) {
      JsonField field = schemas.item(item, index++);
      ARGOSY_TRY(std::string_view text, field.string());
      if (Status status = schemas_.add(text); !status) return fail(std::move(status.error().in(field.path())));
    }
    return {};
  }

  // What nothing here interprets travels on as text.
  void keep_attributes(const JsonField& root) {
    for (std::string_view key :
         {"versions", "model_class", "task", "configuration", "configuration_hash", "wiring", "ties"}) {
      keep_attribute(program_.attributes, key, root.view().find(key));
    }
  }

  static void keep_attribute(std::map<std::string, std::string>& attributes, std::string_view key, JsonView value) {
    if (!value.is_valid() || value.is_null()) return;
    std::string name = format("capture.{}", key);
    if (std::optional<std::string_view> text = value.as_string()) {
      attributes.emplace(std::move(name), *text);
      return;
    }
    JsonWriter writer;
    attributes.emplace(std::move(name), writer.value(value).take());
  }

  Status read_component(const JsonField& json) {
    ARGOSY_TRY_STATUS(json.require_object());
    JsonField name_field = json.member("name");
    ARGOSY_TRY(std::string_view name, name_field.string());
    if (name.empty() || name.find('/') != std::string_view::npos) return name_field.error("not a component's name");
    if (program_.find_component(name) != nullptr)
      return name_field.error(format("component {} occurs twice", quoted(name)));
    ARGOSY_TRY(std::string_view graph_entry, json.member("graph").string());
    ARGOSY_TRY(std::string_view companion_entry, json.member("companion").string());
    ARGOSY_TRY(JsonDocument graph, parse_entry(graph_entry, kMaxGraph));
    ARGOSY_TRY(JsonDocument companion, parse_entry(companion_entry, kMaxGraph));
    GraphJsonOptions options;
    options.schemas = &schemas_;
    options.companion = companion.root();
    options.diagnostics = diagnostics_;
    options.bind_weight = [&](WeightKind kind, std::string_view weight, DType dtype,
                              const std::vector<int64_t>& shape) { return bind(name, kind, weight, dtype, shape); };
    Result<Component> component = read_graph_json(graph.root(), name, program_, options);
    if (!component) return fail(std::move(component.error().in(format("entry {}", quoted(graph_entry)))));
    ARGOSY_TRY_STATUS(read_interface(json, *component));
    ARGOSY_TRY_STATUS(read_samples(json, zip_, samples_, *component));
    keep_attribute(component->attributes, "cache", json.view().find("cache"));
    program_.components.push_back(*std::move(component));
    return {};
  }

  // A constant of one component is stored as "<component>/<name>"; what all share, and what the checkpoint brings, has
  // its plain name.
  Result<WeightId> bind(std::string_view component, WeightKind kind, std::string_view name, DType dtype,
                        const std::vector<int64_t>& shape) {
    std::string full_name = format("{}/{}", component, name);
    const SafetensorsEntry* stored = constants_.find(full_name);
    if (stored == nullptr) {
      full_name = name;
      stored = constants_.find(full_name);
    }
    auto known = by_name_.find(full_name);
    if (known != by_name_.end()) {
      const Weight& weight = program_[known->second];
      if (weight.kind == kind && weight.dtype == dtype && weight.shape == shape) return known->second;
      return fail(ErrorCode::kCorruptFile,
                  format("components differ on kind, dtype or shape of weight {}", quoted(full_name)));
    }
    Weight weight{.name = full_name, .kind = kind, .dtype = dtype, .shape = shape, .source = nullptr, .tied_to = {}};
    if (stored == nullptr) {
      ARGOSY_TRY(weight.source, shape_only(dtype, shape, full_name));
    } else {
      if (stored->dtype != dtype || stored->shape != shape) {
        return fail(ErrorCode::kCorruptFile,
                    format("the graph and {} differ on dtype or shape of {}", kConstants, quoted(full_name)));
      }
      ARGOSY_TRY(weight.source, file_slice(zip_.file(), stored->offset, dtype, shape));
    }
    if (const std::string* owner = ties_.owner(full_name)) weight.tied_to = first_of(*owner, weight);
    WeightId id{static_cast<uint32_t>(program_.weights.size())};
    program_.weights.push_back(std::move(weight));
    by_name_.emplace(std::move(full_name), id);
    return id;
  }

  // The first weight that is tied to the same one; what must differ in dtype or shape is another tensor.
  WeightId first_of(const std::string& owner, const Weight& weight) const {
    for (const std::string& name : ties_.names(owner)) {
      auto known = by_name_.find(name);
      if (known == by_name_.end()) continue;
      const Weight& other = program_[known->second];
      if (other.kind != weight.kind || other.dtype != weight.dtype || other.shape != weight.shape) continue;
      return other.tied_to.is_valid() ? other.tied_to : known->second;
    }
    return {};
  }

  const ZipReader& zip_;
  Diagnostics* diagnostics_;
  SchemaLibrary schemas_;
  StoredTensors constants_, samples_;
  Program program_;
  Ties ties_;
  std::unordered_map<std::string, WeightId> by_name_;
};

}  // namespace

bool is_capture(const ZipReader& zip) { return zip.find(kManifest) != nullptr; }

Result<Program> read_capture(const ZipReader& zip, Diagnostics* diagnostics) {
  return CaptureReader(zip, diagnostics).read();
}

}  // namespace argosy
