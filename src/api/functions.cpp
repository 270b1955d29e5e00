#include "api/functions.h"

#include <utility>

#include "api/errors.h"
#include "api/inspect_json.h"
#include "base/text.h"
#include "cache/capture_cache.h"
#include "cache/capture_key.h"
#include "cache/extension_answer.h"
#include "driver/earlier_bundle.h"
#include "driver/lint_folder.h"
#include "driver/stored_dtype.h"
#include "io/checkpoint.h"

namespace argosy::api {
namespace {

namespace fs = std::filesystem;

const Backend& backend_of(ExportFormat format) {
  switch (format) {
    case ExportFormat::kOnnx: break;
    case ExportFormat::kExecutorch: return *find_backend("executorch");
    case ExportFormat::kPt2: return *find_backend("pt2");
  }
  return *find_backend("onnx");
}

Error lacks(const CacheRequest& request, std::string_view what) {
  return {ErrorCode::kNotFound,
          format("the cache {} has no {} of {}", quoted(request.cache.native(), 1000), what,
                 quoted(request.model.native(), 1000)),
          "argosy export makes it once, also on another machine: argosy cache export there, argosy cache import here"};
}

Result<CachedFiles> find_files(const CacheRequest& request) {
  const Backend& backend = backend_of(request.format);
  CaptureRequest wanted;
  wanted.model = request.model;
  wanted.task = request.task;
  wanted.shape = request.shape;
  wanted.prefill = request.prefill;
  wanted.trust_remote_code = request.trust_remote_code;
  BackendOptions ignored;
  ARGOSY_TRY(wanted.dtype, read_stored_dtype(backend, request.dtype, ignored));
  ARGOSY_TRY(wanted.dtype, export_dtype(backend, request.model, wanted.dtype));
  ARGOSY_TRY(Checkpoint checkpoint, Checkpoint::open(request.model));
  const CaptureCache cache(request.cache);
  std::string_view missing = "capture";
  for (const std::string& extensions : all_remembered_extensions(request.cache)) {
    wanted.extensions = extensions;
    ARGOSY_TRY(std::string capture_name, capture_key(wanted));
    ARGOSY_TRY(auto capture, cache.find(CacheKind::kCapture, capture_name));
    if (!capture) continue;
    ARGOSY_TRY(std::string plan_name, weight_plan_key(for_weight_plan(wanted), checkpoint));
    ARGOSY_TRY(auto plan, cache.find(CacheKind::kWeightPlan, plan_name));
    if (plan) return CachedFiles{capture->path.string(), plan->path.string()};
    missing = "weight plan";
  }
  return fail(lacks(request, missing));
}

CheckRecord record_of(JsonView manifest) {
  ExportCheck check = read_check(manifest);
  return {std::move(check.kind), std::move(check.why), std::move(check.compared), std::move(check.quality)};
}

std::vector<std::string> texts_at(JsonView object, std::string_view key) {
  std::vector<std::string> texts;
  for (JsonView each : object.find(key).items()) texts.emplace_back(each.as_string().value_or(""));
  return texts;
}

Result<BundleDescription> read_description(const fs::path& folder) {
  ARGOSY_TRY(JsonDocument document, read_bundle_manifest(folder));
  const JsonView manifest = document.root();
  BundleDescription bundle;
  bundle.format = text_at(manifest, "format");
  bundle.engine = text_at(manifest, "engine");
  bundle.model_class = text_at(manifest, "model_class");
  bundle.task = text_at(manifest, "task");
  bundle.source = text_at(manifest.find("source"), "name");
  bundle.options = texts_at(manifest, "options");
  bundle.files = texts_at(manifest, "files");
  for (JsonView graph : manifest.find("graphs").items())
    bundle.graphs.push_back({text_at(graph, "file"), text_at(graph, "component"), text_at(graph, "method")});
  bundle.check = record_of(manifest);
  for (JsonView each : manifest.find("variants").items())
    bundle.variants.push_back({text_at(each, "name"), record_of(each)});
  for (const std::string& name : texts_at(manifest, "folders")) {
    if (find_variant(name) == nullptr)
      return fail(ErrorCode::kCorruptFile, format("{} lists a folder {} of no variant", folder.string(), quoted(name)));
    ARGOSY_TRY(JsonDocument own, read_bundle_manifest(folder / name));
    bundle.variants.push_back({name, record_of(own.root())});
  }
  if (!bundle.variants.empty()) bundle.check = bundle.variants[0].check;
  return bundle;
}

}  // namespace

Result<CachedFiles> find_cached(const CacheRequest& request) {
  return or_error<CachedFiles>([&](Diagnostics&) { return find_files(request); });
}

Result<std::string> inspect(const fs::path& path, const fs::path& schemas) {
  return or_error<std::string>([&](Diagnostics& diagnostics) { return inspect_json(path, schemas, diagnostics); });
}

Result<LintReport> lint(const fs::path& folder, const std::string& engine) {
  return or_error<LintReport>([&](Diagnostics&) -> Result<LintReport> {
    ARGOSY_TRY(engines::LintReport found, lint_folder(folder, engine));
    LintReport report{std::move(found.engine), found.graphs, found.files, {}};
    for (engines::Finding& each : found.findings) {
      report.findings.push_back({each.severity == engines::Finding::Severity::kError, std::move(each.rule),
                                 std::move(each.file), std::move(each.what), std::move(each.hint)});
    }
    return report;
  });
}

Result<BundleDescription> describe_bundle(const fs::path& folder) {
  return or_error<BundleDescription>([&](Diagnostics&) { return read_description(folder); });
}

}  // namespace argosy::api
