#include "export_jobs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "driver/earlier_bundle.h"
#include "driver/executorch/seen_ranges.h"
#include "driver/onnx/seen_values.h"
#include "driver/stored_dtype.h"
#include "driver/variants.h"
#include "engines/engine.h"
#include "model_source.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

Status check_variants(const ExportOptions& options) {
  if (options.variants.empty() && !options.adds) return {};
  if (options.adds && options.backend_options.onnx.own_engine != nullptr)
    return fail(ErrorCode::kUnsupportedFeature, "--add knows no bundles for engines of packages", "export it anew");
  const std::string asked = options.variants.empty() ? "--add" : format("--dtype {}", join(options.variants, ","));
  if (options.backend_options.onnx.lowering.quantization.is_wanted())
    return fail(ErrorCode::kInvalidInput, format("{} says how weights are stored, and so does --quantize", asked),
                "leave out one of them");
  if (!options.capture.empty())
    return fail(ErrorCode::kInvalidInput, format("{} needs captures of its own", asked), "leave out --capture");
  return {};
}

Status check_adapters_apart(const ExportOptions& options) {
  if (options.adapters_apart.empty()) return {};
  const engines::Engine* engine = engines::find_engine(options.backend_options.onnx.engine);
  if (engine == nullptr || !engine->limits.switches_adapters) {
    return fail(ErrorCode::kInvalidInput, "--adapter-apart is for an engine that switches adapters",
                "add --for genai, or merge an adapter: --adapter");
  }
  if (options.adds)
    return fail(ErrorCode::kInvalidInput, "--adapter-apart adds nothing to files that stay as they are",
                "export all variants anew, without --add");
  return {};
}

/// What is added to a bundle: variants, of which two are names of dtypes as well.
Result<std::vector<std::string>> added_variants(const ExportOptions& options) {
  if (!options.variants.empty()) return options.variants;
  const bool is_quantized = options.backend_options.onnx.lowering.quantization.is_wanted();
  for (const Variant& each : all_variants()) {
    if (!is_quantized && !each.is_mixed && each.quantize.empty() && each.dtype == options.dtype)
      return std::vector{std::string(each.name)};
  }
  return fail(ErrorCode::kInvalidInput, "--add adds variants, and none is named", "add --dtype q8, or fp16,q4");
}

tl::unexpected<Error> there_already(const ExportDestination& destination, std::string_view name) {
  return fail(ErrorCode::kInvalidInput, format("{} has {} already", quoted(destination.path.native(), 1000), name),
              "leave it out of --dtype, or export all variants anew without --add");
}

/// The options of one variant, as if it were asked for alone.
ExportOptions options_of(const ExportOptions& options, std::string_view name) {
  const Variant* variant = find_variant(name);
  ARGOSY_CHECK(variant != nullptr, "the command line knows a variant that is none: " + std::string(name));
  ExportOptions own = options;
  own.variants.clear();
  own.dtype = variant->dtype;
  set_variant(*variant, own.backend_options.onnx);
  return own;
}

/// Mixed float16 is made of float32, and of values that were seen.
Status read_half(ExportJob& job) {
  onnx::LoweringOptions& lowering = job.options.backend_options.onnx.lowering;
  if (lowering.half != onnx::HalfMode::kNone && job.options.dtype == "auto") job.options.dtype = "float32";
  const std::string& seen = job.options.seen_values;
  if (lowering.half != onnx::HalfMode::kMixed || seen.empty()) return {};
  ARGOSY_TRY(lowering.seen, read_seen_values(seen));
  return {};
}

/// 8a8w is made of ranges that were seen.
Status read_ranges(ExportJob& job) {
  executorch::LoweringOptions& lowering = job.options.backend_options.executorch.lowering;
  if (!lowering.needs_ranges() || job.options.seen_values.empty()) return {};
  ARGOSY_TRY(lowering.ranges, read_seen_ranges(job.options.seen_values));
  return {};
}

/// Refuses files and texts that nothing reads, and what cannot be made without them.
Status check_seen(const ExportOptions& options, const ExportJobs& jobs) {
  const bool needs_ranges = options.backend_options.executorch.lowering.needs_ranges();
  if (options.seen_values.empty() && options.calibrate.empty()) {
    if (!needs_ranges) return {};
    return fail(ErrorCode::kInvalidInput, "8a8w rounds activations to ranges that were seen, and none were",
                "add --calibrate FILE: a text, or inputs of the model (.safetensors)");
  }
  if (!options.seen_values.empty() && !options.calibrate.empty())
    return fail(ErrorCode::kInvalidInput, "--calibrate and --seen-values say the same thing", "leave out one of them");
  auto is_mixed = [](const auto& job) {
    return job->options.backend_options.onnx.lowering.half == onnx::HalfMode::kMixed;
  };
  if (needs_ranges || std::ranges::any_of(jobs, is_mixed)) return {};
  if (options.backend == "executorch")
    return fail(ErrorCode::kInvalidInput, "values are seen for 8a8w, which is not asked for", "add --qlinear 8a8w");
  return fail(ErrorCode::kInvalidInput, "values are seen for mixed float16, which is not asked for",
              "add --dtype mixed16");
}

/// The checkpoint; a folder with a configuration alone is told from one that is no model's.
Result<Checkpoint> open_checkpoint(const fs::path& model) {
  auto opened = Checkpoint::open(model);
  std::error_code ignored;
  if (opened || opened.error().code != ErrorCode::kNotFound || !fs::exists(model / "config.json", ignored))
    return opened;
  for (const auto& entry : fs::directory_iterator(model, ignored)) {
    const std::string name = entry.path().filename().string();
    for (std::string_view ending : {".safetensors", ".bin", ".gguf", ".index.json"}) {
      if (name.ends_with(ending)) return opened;
    }
  }
  return fail(ErrorCode::kNotFound,
              format("{} has config.json but no weights (*.safetensors)", quoted(model.native(), 1000)),
              "download them too; argosy capture needs config.json alone");
}

Status find_files(const fs::path& model, const Backend& backend, ExportJob& job, const Environment& environment,
                  Terminal& terminal) {
  const ExportOptions& options = job.options;
  job.request = capture_request(options, model, environment);
  // A capture that is named has the dtype that it has.
  if (options.capture.empty()) {
    ARGOSY_TRY(job.request.dtype, export_dtype(backend, model, options.dtype));
    if (job.request.dtype != options.dtype) {
      terminal.log(LogLevel::kInfo, format("the configuration asks for bfloat16, which {} engines lack: exporting {}",
                                           backend.name, job.request.dtype));
    }
  }
  ARGOSY_TRY(job.checkpoint, open_checkpoint(model));
  ARGOSY_TRY_STATUS(add_adapter(options.adapter, job.checkpoint, job.request));
  ARGOSY_TRY_STATUS(add_adapters_apart(options.adapters_apart, job.checkpoint, job.request));
  ARGOSY_TRY(job.capture_work, capture_work(job.request));
  ARGOSY_TRY(job.plan_work, weight_plan_work(job.request, job.checkpoint));
  job.capture_work.renew = job.plan_work.renew = options.recapture;
  return {};
}

Result<fs::path> obtain_file(const std::string& named, const PythonWork& work, const Environment& environment,
                             Terminal& terminal) {
  if (!named.empty()) return fs::path(named);
  ARGOSY_TRY(Obtained obtained, obtain_by_python(work, environment, terminal));
  return obtained.entry.path;
}

/// What the user asked for, for the bundle; the backend knows its own options.
std::vector<std::string> options_of_graphs(const ExportJob& job) {
  std::vector<std::string> asked;
  if (!job.options.task.empty()) asked.push_back(format("--task={}", job.options.task));
  if (!job.options.shape.empty()) asked.push_back(format("--shape={}", job.options.shape));
  for (const std::string& file : job.options.inputs)
    asked.push_back(format("--inputs={}", fs::path(file).filename().string()));
  if (job.options.prefill) asked.emplace_back("--prefill");
  for (const auto& [name, folder] : job.request.adapters_apart) asked.push_back(format("--adapter-apart={}", name));
  if (job.request.dtype != "auto") asked.push_back(format("--dtype={}", job.request.dtype));
  return asked;
}

ExportInput input_of(const ExportJob& job) {
  return {job.capture, &job.plan, &job.checkpoint, job.request.model, options_of_graphs(job)};
}

}  // namespace

Result<ExportJobs> find_jobs(const ExportOptions& options, const Backend& backend, const ExportDestination& destination,
                             const Environment& environment, Terminal& terminal) {
  if (!options.adapter.empty() && options.check == CheckMode::kFull) {
    return fail(ErrorCode::kUnsupportedFeature, "--check full compares with the model alone, without its adapter",
                "leave out --check full, or merge the adapter with PEFT and export the merged model");
  }
  ARGOSY_TRY_STATUS(check_adapters_apart(options));
  ARGOSY_TRY_STATUS(check_variants(options));
  ExportJobs jobs;
  auto add_variant = [&](const std::string& name) -> ExportJob& {
    jobs.push_back(std::make_unique<ExportJob>());
    jobs.back()->variant = name;
    jobs.back()->options = options_of(options, name);
    return *jobs.back();
  };
  if (options.adds) {
    ARGOSY_TRY(std::vector<std::string> added, added_variants(options));
    ARGOSY_TRY(std::vector<EarlierVariant> earlier,
               read_earlier_variants(destination.path, options.backend_options.onnx.engine));
    for (const EarlierVariant& each : earlier) {
      if (std::ranges::find(added, each.name) != added.end()) return there_already(destination, each.name);
      if (find_variant(each.name) == nullptr)
        return fail(ErrorCode::kInvalidInput, format("{} is no variant", quoted(each.name)), "export it anew");
      add_variant(each.name).earlier = each.check;
    }
    for (const std::string& name : added) add_variant(name);
  } else if (options.variants.size() < 2) {
    jobs.push_back(std::make_unique<ExportJob>());
    jobs[0]->options = options.variants.empty() ? options : options_of(options, options.variants[0]);
  } else {
    for (const std::string& name : options.variants) add_variant(name);
  }
  std::vector<std::string> names;
  for (const auto& job : jobs) names.push_back(job->variant);
  ARGOSY_TRY_STATUS(check_variant_names(names, options.backend_options.onnx));
  ARGOSY_TRY_STATUS(check_seen(options, jobs));
  for (const auto& job : jobs) {
    ARGOSY_TRY_STATUS(read_half(*job));
    ARGOSY_TRY_STATUS(read_ranges(*job));
  }
  ARGOSY_TRY(fs::path model, obtain_model(options.source, ModelParts::kWeights, environment, terminal));
  for (const auto& job : jobs) ARGOSY_TRY_STATUS(find_files(model, backend, *job, environment, terminal));
  return jobs;
}

Status obtain_captures(const ExportJobs& jobs, const Environment& environment, Terminal& terminal) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    ExportJob& job = *jobs[i];
    auto is_made = [&](PythonWork ExportJob::* work) {
      return std::any_of(jobs.begin(), jobs.begin() + static_cast<ptrdiff_t>(i),
                         [&](const auto& each) { return (*each.*work).key == (job.*work).key; });
    };
    if (is_made(&ExportJob::capture_work)) job.capture_work.renew = false;
    if (is_made(&ExportJob::plan_work)) job.plan_work.renew = false;
    ARGOSY_TRY(job.capture, obtain_file(job.options.capture, job.capture_work, environment, terminal));
    ARGOSY_TRY(fs::path plan, obtain_file(job.options.plan, job.plan_work, environment, terminal));
    ARGOSY_TRY(job.plan, WeightPlan::read(plan));
  }
  return {};
}

Result<std::unique_ptr<Export>> prepare(const ExportJobs& jobs, const Backend& backend,
                                        const ExportDestination& destination, Diagnostics& diagnostics) {
  if (jobs.size() == 1)
    return backend.prepare(input_of(*jobs[0]), destination, jobs[0]->options.backend_options, diagnostics);
  std::vector<ExportVariant> variants;
  for (const auto& job : jobs)
    variants.push_back({job->variant, input_of(*job), job->options.backend_options, job->earlier.has_value()});
  return backend.prepare_variants(std::move(variants), destination, diagnostics);
}

}  // namespace argosy::cli
