#include "driver/export_manifest.h"

#include <algorithm>
#include <map>

#include "argosy/version.h"
#include "base/checked_math.h"
#include "base/text.h"
#include "io/zip.h"

namespace argosy {
namespace {

constexpr std::string_view kCaptureManifest = "capture.json";
constexpr int kManifestVersion = 1;

// What of a component concerns its callers; the rest names entries of the capture.
constexpr std::string_view kComponentKeys[] = {"name", "inputs", "outputs",     "dims",
                                               "sums", "cache",  "specialized", "guards"};

void copy(JsonWriter& json, JsonView from, std::string_view key) {
  if (JsonView value = from.find(key); value.is_valid()) json.key(key).value(value);
}

void write_names(JsonWriter& json, const std::vector<std::string>& names) {
  json.begin_array();
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

void write_method(JsonWriter& json, const ManifestGraph& graph) {
  json.key("method").value(graph.method).key("inputs");
  write_names(json, graph.inputs);
  json.key("outputs");
  write_names(json, graph.outputs);
  json.key("largest").begin_array();
  for (const std::vector<int64_t>& sizes : graph.largest) {
    json.begin_array();
    for (int64_t size : sizes) json.value(size);
    json.end_array();
  }
  json.end_array();
}

void write_graphs(JsonWriter& json, const std::vector<ManifestGraph>& graphs) {
  json.key("graphs").begin_array();
  for (const ManifestGraph& graph : graphs) {
    json.begin_object().key("file").value(graph.file).key("component").value(graph.component);
    json.key("renamed").begin_object();
    for (const auto& [from, to] : graph.renamed) json.key(from).value(to);
    json.end_object();
    if (!graph.method.empty()) write_method(json, graph);
    json.end_object();
  }
  json.end_array();
}

void write_quantized(JsonWriter& json, const std::vector<QuantizedWeight>& weights) {
  json.key("quantized").begin_array();
  for (const QuantizedWeight& each : weights) {
    json.begin_object().key("weight").value(each.weight).key("use").value(each.use);
    json.key("encoding").value(each.encoding).key("group").value(each.group);
    if (const auto& rounding = each.rounding) {
      json.key("input").begin_array().value(static_cast<double>(rounding->input_scale));
      json.value(int64_t{rounding->input_zero}).end_array();
      json.key("output").begin_array().value(static_cast<double>(rounding->output_scale));
      json.value(int64_t{rounding->output_zero}).end_array();
    }
    json.end_object();
  }
  json.end_array();
}

void write_adapters(JsonWriter& json, const std::vector<ManifestAdapter>& adapters) {
  json.key("adapters").begin_array();
  for (const ManifestAdapter& each : adapters)
    json.begin_object().key("name").value(each.name).key("file").value(each.file).end_object();
  json.end_array();
}

void write_check(JsonWriter& json, const ExportCheck& check) {
  json.key("check").begin_object().key("kind").value(check.kind).key("why").value(check.why);
  if (!check.compared.empty()) json.key("compared").value(check.compared);
  if (auto figures = JsonDocument::parse(check.quality, "quality"); figures && figures->root().is_object())
    json.key("quality").value(figures->root());
  json.end_object();
}

void write_variants(JsonWriter& json, const std::vector<ManifestVariant>& variants) {
  json.key("variants").begin_array();
  for (const ManifestVariant& each : variants) {
    json.begin_object().key("name").value(each.name);
    write_graphs(json, each.graphs);
    write_quantized(json, each.quantized);
    write_check(json, each.check);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::vector<std::string> quantized_lines(const std::vector<QuantizedWeight>& weights) {
  std::map<std::string, size_t> counts;
  for (const QuantizedWeight& each : weights) {
    std::string groups = each.group == 0 ? "a scale for each row" : format("a scale for {} values each", each.group);
    std::string_view layers = each.use == "embedding"     ? "embedding"
                              : each.use == "convolution" ? "convolution"
                                                          : "linear";
    ++counts[format("of {} layers stored as {}, {}", layers, each.encoding, groups)];
  }
  std::vector<std::string> lines;
  for (const auto& [what, count] : counts)
    lines.push_back(format("{} {} {}", count, count == 1 ? "weight" : "weights", what));
  return lines;
}

std::string ExportCheck::text() const {
  if (kind == "twin" || kind == "full") return compared.empty() ? format("{} passed", kind) : compared;
  return format("none ({})", why);
}

Result<JsonDocument> read_capture_manifest(const std::filesystem::path& capture) {
  ARGOSY_TRY(ZipReader zip, ZipReader::open(capture));
  const ZipEntry* entry = zip.find(kCaptureManifest);
  if (entry == nullptr) {
    return fail(ErrorCode::kCorruptFile, format("{} is not a capture", quoted(capture.native(), 1000)),
                "argosy capture makes one");
  }
  ARGOSY_TRY(std::string text, zip.read(*entry, kMaxManifest));
  return JsonDocument::parse_owned(std::move(text), kCaptureManifest);
}

std::optional<DType> weights_dtype(const Program& program) {
  std::map<DType, int64_t> counts;
  for (const Weight& weight : program.weights) {
    if (kind_of(weight.dtype) != DTypeKind::kFloat) continue;
    int64_t& count = counts[weight.dtype];
    count = checked_add(count, weight.source->elements()).value_or(count);
  }
  if (counts.empty()) return std::nullopt;
  return std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
}

std::string export_manifest(JsonView capture, const ManifestOptions& options) {
  JsonWriter json;
  json.begin_object();
  json.key("format").value(options.format).key("version").value(kManifestVersion);
  json.key("argosy").value(version());
  for (std::string_view key : {"versions", "model_class", "task", "configuration_hash"}) copy(json, capture, key);
  if (!options.source.empty()) {
    json.key("source").begin_object().key("name").value(options.source);
    if (!options.commit.empty()) json.key("commit").value(options.commit);
    json.end_object().key("options");
    write_names(json, options.options);
  }
  if (options.dtype) json.key("dtype").value(to_text(*options.dtype));
  json.key("component");
  options.component.empty() ? json.null() : json.value(options.component);
  json.key("components").begin_array();
  for (JsonView each : capture.find("components").items()) {
    json.begin_object();
    for (std::string_view key : kComponentKeys) copy(json, each, key);
    json.end_object();
  }
  json.end_array();
  copy(json, capture, "wiring");
  if (!options.engine.empty()) json.key("engine").value(options.engine);
  if (!options.own_engine.empty()) {
    json.key(kOwnEngineKey).begin_object().key("name").value(options.own_engine);
    json.key("package").value(options.own_package).key("version").value(options.own_version).end_object();
  }
  if (!options.device.empty()) json.key("device").value(options.device);
  if (!options.graphs.empty()) write_graphs(json, options.graphs);
  if (!options.files.empty()) {
    json.key("files");
    write_names(json, options.files);
  }
  if (!options.quantized.empty()) write_quantized(json, options.quantized);
  if (!options.adapters.empty()) write_adapters(json, options.adapters);
  if (!options.variants.empty()) write_variants(json, options.variants);
  write_check(json, options.check);
  json.end_object();
  return json.take();
}

std::string folders_manifest(const std::vector<std::string>& variants, const std::vector<std::string>& files) {
  JsonWriter json;
  json.begin_object().key("format").value("argosy-variants").key("version").value(kManifestVersion);
  json.key("argosy").value(version()).key("folders");
  write_names(json, variants);
  json.key("files");
  write_names(json, files);
  json.end_object();
  return json.take();
}

}  // namespace argosy
