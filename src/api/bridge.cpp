#include "api/bridge.h"

#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "driver/backend_arguments.h"
#include "driver/backends.h"
#include "driver/user_rules.h"
#include "driver/validate_export.h"
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

Status read_arguments(const ExportCall& call, BackendOptions& options) {
  if (call.backend == "onnx") return read_onnx_arguments(call.arguments, options.onnx);
  if (call.backend == "executorch") return read_executorch_arguments(call.arguments, options.executorch);
  ARGOSY_CHECK(call.arguments.empty(), "there are no options of " + call.backend);
  return {};
}

/// The folder of the checkpoint, where configuration and tokenizer are.
std::filesystem::path model_folder(const Checkpoint& checkpoint) {
  return checkpoint.files().empty() ? std::filesystem::path()
                                    : std::filesystem::path(checkpoint.files()[0]).parent_path();
}

Result<ExportedBundle> run(const OpenCapture& capture, const OpenCheckpoint& checkpoint, const ExportCall& call,
                           Diagnostics& diagnostics) {
  const Backend* backend = find_backend(call.backend);
  ARGOSY_CHECK(backend != nullptr, "there is no backend " + call.backend);
  BackendOptions options;
  ARGOSY_TRY_STATUS(read_arguments(call, options));
  ARGOSY_TRY(auto rules, user_rules(call.rules));
  options.set_rules(rules);
  std::optional<WeightPlan> plan;
  if (!call.weight_plan.empty()) {
    ARGOSY_TRY(plan, WeightPlan::read(call.weight_plan));
  }
  const ExportDestination destination{call.output, call.output.extension() != backend->suffix};
  const ExportInput input{capture.path, plan ? &*plan : nullptr, &checkpoint.checkpoint,
                          model_folder(checkpoint.checkpoint)};
  const ExportRequest request{.backend = backend,
                              .options = &options,
                              .destination = &destination,
                              .checkpoint = &checkpoint.checkpoint,
                              .model = input.model,
                              .dtype = "auto",
                              .capture = capture.path};
  ARGOSY_TRY_STATUS(validate_export(request, diagnostics.notes));
  ARGOSY_TRY(std::unique_ptr<Export> prepared, backend->prepare(input, destination, options, diagnostics));
  ExportedBundle bundle{call.output, {}, prepared->total_bytes(), prepared->fixed_dims()};
  for (const ExportFile& file : prepared->files()) bundle.files.push_back(file.file);
  for (const std::string& note : diagnostics.notes) bundle.warnings.push_back(note);
  ExportWriteOptions write;
  write.scratch_bytes = call.scratch_bytes;
  write.threads = call.threads;
  write.check = {"off", "not asked for", ""};
  write.on_warning = [&](const std::string& text) { bundle.warnings.push_back(text); };
  if (call.progress) {
    write.progress = [&](const Progress& state) { call.progress(state.bytes_done, state.bytes_total); };
  }
  ARGOSY_TRY_STATUS(prepared->write(write));
  return bundle;
}

}  // namespace

Result<ExportedBundle> export_model(const OpenCapture& capture, const OpenCheckpoint& checkpoint,
                                    const ExportCall& call) {
  Diagnostics diagnostics;
  try {
    auto bundle = run(capture, checkpoint, call, diagnostics);
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
