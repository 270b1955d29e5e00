#include "api/bridge.h"

#include <algorithm>
#include <map>
#include <optional>

#include "api/errors.h"
#include "base/check.h"
#include "base/text.h"
#include "driver/backend_arguments.h"
#include "driver/backends.h"
#include "driver/executorch/seen_ranges.h"
#include "driver/onnx/seen_values.h"
#include "driver/stored_dtype.h"
#include "driver/user_rules.h"
#include "driver/validate_export.h"
#include "frontends/read_program.h"
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

/// Files of what was seen, for what is made of it.
Status read_seen(const std::filesystem::path& path, BackendOptions& options) {
  onnx::LoweringOptions& onnx = options.onnx.lowering;
  executorch::LoweringOptions& executorch = options.executorch.lowering;
  if (path.empty()) {
    if (!executorch.needs_ranges()) return {};
    return fail(ErrorCode::kInvalidInput, "8a8w rounds activations to ranges that were seen, and none were",
                "name a file that python -m argosy.check.ranges wrote: seen_values");
  }
  if (executorch.needs_ranges()) {
    ARGOSY_TRY(executorch.ranges, read_seen_ranges(path));
  } else if (onnx.half == onnx::HalfMode::kMixed) {
    ARGOSY_TRY(onnx.seen, read_seen_values(path));
  } else {
    return fail(ErrorCode::kInvalidInput, "seen_values is for mixed16 and 8a8w, and neither is asked for",
                "leave it out, or ask for one of them");
  }
  return {};
}

/// Fails if the graphs were captured in another dtype than is asked for.
Status check_dtype(const std::filesystem::path& capture, const std::string& dtype) {
  if (dtype.empty() || dtype == "auto") return {};
  ARGOSY_TRY(Program program, read_program(capture, {}));
  std::map<DType, size_t> counts;
  for (const Weight& weight : program.weights) {
    if (kind_of(weight.dtype) == DTypeKind::kFloat) ++counts[weight.dtype];
  }
  if (counts.empty()) return {};
  const std::map<std::string, DType> dtypes = {
      {"float32", DType::kF32}, {"float16", DType::kF16}, {"bfloat16", DType::kBF16}};
  const DType most = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
  if (dtypes.at(dtype) == most) return {};
  return fail(ErrorCode::kInvalidInput,
              format("{} is asked for, and weights are {} in {}", dtype, to_text(most), quoted(capture.native(), 1000)),
              format("capture it anew: argosy capture --dtype {}", dtype));
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
  std::string dtype;
  if (!call.dtype.empty()) {
    ARGOSY_TRY(dtype, read_stored_dtype(*backend, call.dtype, options));
    ARGOSY_TRY_STATUS(check_dtype(capture.path, dtype));
  }
  ARGOSY_TRY_STATUS(read_seen(call.seen_values, options));
  ARGOSY_TRY(auto rules, user_rules(call.rules));
  options.set_rules(rules);
  std::optional<WeightPlan> plan;
  if (!call.weight_plan.empty()) {
    ARGOSY_TRY(plan, WeightPlan::read(call.weight_plan));
  }
  const ExportDestination destination{call.output, call.output.extension() != backend->suffix};
  ExportInput input{capture.path, plan ? &*plan : nullptr, &checkpoint.checkpoint, model_folder(checkpoint.checkpoint)};
  if (!dtype.empty() && dtype != "auto") input.options.push_back(format("--dtype={}", dtype));
  const ExportRequest request{.backend = backend,
                              .options = &options,
                              .destination = &destination,
                              .checkpoint = &checkpoint.checkpoint,
                              .model = input.model,
                              .dtype = dtype.empty() ? "auto" : dtype,
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
  return or_error<ExportedBundle>(
      [&](Diagnostics& diagnostics) { return run(capture, checkpoint, call, diagnostics); });
}

}  // namespace argosy::api
