#include "driver/api_bridge.h"

#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "driver/backends.h"
#include "driver/user_rules.h"
#include "io/checkpoint.h"

namespace argosy::api {

struct OpenCheckpoint {
  Checkpoint checkpoint;
};

Result<std::shared_ptr<const OpenCapture>> open_capture(const std::filesystem::path& path) {
  ARGOSY_TRY(JsonDocument manifest, read_capture_manifest(path));
  auto opened = std::make_shared<OpenCapture>();
  opened->path = path;
  opened->model_class = manifest.root().find("model_class").as_string().value_or("");
  for (JsonView component : manifest.root().find("components").items())
    opened->components.emplace_back(component.find("name").as_string().value_or(""));
  return opened;
}

Result<std::shared_ptr<const OpenCheckpoint>> open_checkpoint(const std::filesystem::path& path) {
  ARGOSY_TRY(Checkpoint checkpoint, Checkpoint::open(path));
  return std::make_shared<const OpenCheckpoint>(std::move(checkpoint));
}

size_t tensor_count(const OpenCheckpoint& checkpoint) { return checkpoint.checkpoint.tensors().size(); }
uint64_t total_bytes(const OpenCheckpoint& checkpoint) { return checkpoint.checkpoint.total_bytes(); }

namespace {

OnnxOptions onnx_options(const OnnxExportOptions& options) {
  OnnxOptions result;
  result.lowering.opset = options.opset;
  result.device = options.device;
  if (!options.optimize) result.lowering.optimize = onnx::Optimize::kOff;
  switch (options.weights) {
    case WeightPlacement::kCopy: result.weights = onnx::WeightsMode::kCopy; break;
    case WeightPlacement::kLink: result.weights = onnx::WeightsMode::kLink; break;
    case WeightPlacement::kEmbed: result.weights = onnx::WeightsMode::kEmbed; break;
  }
  switch (options.engine) {
    case Engine::kPlain: result.engine = "plain"; break;
    case Engine::kGenai: result.engine = "genai"; break;
    case Engine::kTransformersJs: result.engine = "transformersjs"; break;
    case Engine::kOptimum: result.engine = "optimum"; break;
  }
  return result;
}

/// The folder of the checkpoint, where configuration and tokenizer are.
std::filesystem::path model_folder(const Checkpoint& checkpoint) {
  return checkpoint.files().empty() ? std::filesystem::path()
                                    : std::filesystem::path(checkpoint.files()[0]).parent_path();
}

Result<ExportedBundle> run(const OpenCapture& capture, const OpenCheckpoint& checkpoint,
                           const OnnxExportOptions& options, Diagnostics& diagnostics) {
  std::optional<WeightPlan> plan;
  if (!options.weight_plan.empty()) {
    ARGOSY_TRY(plan, WeightPlan::read(options.weight_plan));
  }
  ExportDestination destination{options.output, options.output.extension() != ".onnx"};
  ExportInput input{capture.path, plan ? &*plan : nullptr, &checkpoint.checkpoint, model_folder(checkpoint.checkpoint)};
  BackendOptions backend_options;
  backend_options.onnx = onnx_options(options);
  ARGOSY_TRY(backend_options.onnx.rules, user_rules(options.rules));
  ARGOSY_TRY(std::unique_ptr<Export> prepared,
             find_backend("onnx")->prepare(input, destination, backend_options, diagnostics));
  ExportedBundle bundle{options.output, {}, prepared->total_bytes(), prepared->fixed_dims()};
  for (const ExportFile& file : prepared->files()) bundle.files.push_back(file.file);
  for (const std::string& note : diagnostics.notes) bundle.warnings.push_back(note);
  ExportWriteOptions write;
  write.scratch_bytes = options.scratch_bytes;
  write.threads = options.threads;
  write.check = {"none", "exported by the C++ interface"};
  write.on_warning = [&](const std::string& text) { bundle.warnings.push_back(text); };
  if (options.progress) {
    write.progress = [&](const Progress& state) { options.progress(state.bytes_done, state.bytes_total); };
  }
  ARGOSY_TRY_STATUS(prepared->write(write));
  return bundle;
}

}  // namespace

Result<ExportedBundle> export_onnx(const OpenCapture& capture, const OpenCheckpoint& checkpoint,
                                   const OnnxExportOptions& options) {
  Diagnostics diagnostics;
  try {
    auto bundle = run(capture, checkpoint, options, diagnostics);
    if (bundle) return bundle;
    Error error = std::move(bundle.error());
    for (const Error& other : diagnostics.errors) {
      if (other.message != error.message) error.message += format("; {}", other.message);
    }
    return fail(std::move(error));
  } catch (const InternalError& bug) {
    return fail(ErrorCode::kInternal, bug.what(), "this is a bug in argosy; please report it");
  }
}

}  // namespace argosy::api
