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

/// One capture on its way to files. It stays where it is: the input points to the plan.
struct ModelJob {
  BackendOptions options;
  std::optional<WeightPlan> plan;
  ExportInput input;
};

/// What is asked for, of one variant or of the only one. `dtype` may be a variant's name.
Result<std::unique_ptr<ModelJob>> read_job(const Backend& backend, const VariantCall& variant, const std::string& dtype,
                                           const ExportCall& call, const Checkpoint& checkpoint,
                                           const ExportDestination& destination, Diagnostics& diagnostics) {
  auto job = std::make_unique<ModelJob>();
  ARGOSY_TRY_STATUS(read_arguments(call, job->options));
  std::string captured = "auto";
  if (!dtype.empty()) {
    ARGOSY_TRY(captured, read_stored_dtype(backend, dtype, job->options));
    ARGOSY_TRY_STATUS(check_dtype(variant.capture, captured));
  }
  ARGOSY_TRY_STATUS(read_seen(call.seen_values, job->options));
  ARGOSY_TRY(auto rules, user_rules(call.rules));
  job->options.set_rules(rules);
  if (!variant.weight_plan.empty()) {
    ARGOSY_TRY(job->plan, WeightPlan::read(variant.weight_plan));
  }
  job->input = {variant.capture, job->plan ? &*job->plan : nullptr, &checkpoint, model_folder(checkpoint)};
  if (captured != "auto") job->input.options.push_back(format("--dtype={}", captured));
  const ExportRequest request{.backend = &backend,
                              .options = &job->options,
                              .destination = &destination,
                              .checkpoint = &checkpoint,
                              .model = job->input.model,
                              .dtype = captured,
                              .capture = variant.capture,
                              .variants = std::max<size_t>(call.variants.size(), 1)};
  ARGOSY_TRY_STATUS(validate_export(request, diagnostics.notes));
  return job;
}

using ModelJobs = std::vector<std::unique_ptr<ModelJob>>;

Result<ModelJobs> read_jobs(const Backend& backend, const OpenCapture& capture, const ExportCall& call,
                            const Checkpoint& checkpoint, const ExportDestination& destination,
                            Diagnostics& diagnostics) {
  ModelJobs jobs;
  auto add = [&](const VariantCall& variant, const std::string& dtype) -> Status {
    ARGOSY_TRY(auto job, read_job(backend, variant, dtype, call, checkpoint, destination, diagnostics));
    jobs.push_back(std::move(job));
    return {};
  };
  if (call.variants.empty()) {
    ARGOSY_TRY_STATUS(add({"", capture.path.string(), call.weight_plan.string()}, call.dtype));
    return jobs;
  }
  std::vector<std::string> names;
  for (const VariantCall& each : call.variants) names.push_back(each.name);
  ARGOSY_TRY([[maybe_unused]] auto known, read_variants(join(names, ",")));
  for (const VariantCall& each : call.variants) ARGOSY_TRY_STATUS(add(each, each.name));
  ARGOSY_TRY_STATUS(check_variant_names(names, jobs[0]->options.onnx));
  return jobs;
}

Result<std::unique_ptr<Export>> prepare(const Backend& backend, const ModelJobs& jobs, const ExportCall& call,
                                        const ExportDestination& destination, Diagnostics& diagnostics) {
  if (jobs.size() == 1) return backend.prepare(jobs[0]->input, destination, jobs[0]->options, diagnostics);
  std::vector<ExportVariant> variants;
  for (size_t i = 0; i < jobs.size(); ++i)
    variants.push_back({call.variants[i].name, jobs[i]->input, jobs[i]->options});
  return backend.prepare_variants(std::move(variants), destination, diagnostics);
}

Result<ExportedBundle> run(const OpenCapture& capture, const OpenCheckpoint& checkpoint, const ExportCall& call,
                           Diagnostics& diagnostics) {
  const Backend* backend = find_backend(call.backend);
  ARGOSY_CHECK(backend != nullptr, "there is no backend " + call.backend);
  const ExportDestination destination{call.output, call.output.extension() != backend->suffix};
  ARGOSY_TRY(ModelJobs jobs, read_jobs(*backend, capture, call, checkpoint.checkpoint, destination, diagnostics));
  ARGOSY_TRY(std::unique_ptr<Export> prepared, prepare(*backend, jobs, call, destination, diagnostics));
  ExportedBundle bundle{call.output, {}, prepared->total_bytes(), prepared->fixed_dims()};
  for (const ExportFile& file : prepared->files()) bundle.files.push_back(file.file);
  for (const std::string& note : diagnostics.notes) bundle.warnings.push_back(note);
  ExportWriteOptions write;
  write.scratch_bytes = call.scratch_bytes;
  write.threads = call.threads;
  write.check = {"off", "not asked for", ""};
  write.further_checks.assign(jobs.size() - 1, write.check);
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
