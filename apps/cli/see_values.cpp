#include "see_values.h"

#include "base/system.h"
#include "base/text.h"
#include "driver/executorch/seen_ranges.h"
#include "driver/onnx/seen_values.h"
#include "io/temporary_folder.h"
#include "subprocess.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSeenModule = "argosy.check.seen";
constexpr const char* kRangesModule = "argosy.check.ranges";

/// Has a module write a file, and returns where it is.
Result<fs::path> seen_by(const char* module, std::vector<std::string> arguments, const std::string& calibrate,
                         std::string_view otherwise, const fs::path& folder, const Environment& environment,
                         Terminal& terminal) {
  fs::path output = folder / "seen.json";
  arguments.insert(arguments.end(), {"--progress", "json", "-o", output.string()});
  terminal.begin_stage(format("Looking at values on {}", calibrate));
  ARGOSY_TRY(PythonEnd ended,
             run_module(module, arguments, format("values are to be seen on {}", calibrate), environment, terminal));
  if (ended.exit_code != kDone) {
    Error error = python_failure(ended, "no values were seen", "--calibrate needs torch and transformers",
                                 ErrorCode::kInvalidInput, environment);
    if (!otherwise.empty()) error.hint += format("; {}", otherwise);
    return fail(std::move(error));
  }
  terminal.end_stage();
  return output;
}

Status see(ExportJob& job, const Backend& backend, const ExportDestination& destination, const Environment& environment,
           Terminal& terminal) {
  const ExportOptions& options = job.options;
  BackendOptions observed = options.backend_options;
  observed.onnx.lowering.half = onnx::HalfMode::kNone;  // the module asks for what it needs
  std::vector<std::string> arguments = {"--model",   job.request.model.string(), "--text", options.calibrate,
                                        "--program", system::own_program()};
  for (const std::string& each : backend.graph_arguments(observed)) arguments.push_back("--option=" + each);
  if (observed.onnx.engine != OnnxOptions().engine)
    arguments.push_back(format("--option=--for={}", observed.onnx.engine));
  if (!options.task.empty()) arguments.push_back(format("--option=--task={}", options.task));
  if (!options.shape.empty()) arguments.push_back(format("--option=--shape={}", options.shape));
  if (!options.adapter.empty()) arguments.push_back(format("--option=--adapter={}", options.adapter));
  for (const std::string& file : options.inputs) arguments.push_back(format("--option=--inputs={}", file));
  if (options.prefill) arguments.emplace_back("--option=--prefill");
  if (options.source.trust_remote_code) {
    arguments.emplace_back("--trust-remote-code");
    arguments.emplace_back("--option=--trust-remote-code");
  }
  ARGOSY_TRY(TemporaryFolder folder, TemporaryFolder::create(destination.path));
  arguments.insert(arguments.end(), {"--folder", folder.path().string()});
  ARGOSY_TRY(fs::path output,
             seen_by(kSeenModule, std::move(arguments), options.calibrate,
                     "without --calibrate the graph's structure alone decides", folder.path(), environment, terminal));
  ARGOSY_TRY(job.options.backend_options.onnx.lowering.seen, read_seen_values(output));
  return {};
}

Status see_ranges(ExportJob& job, const ExportDestination& destination, const Environment& environment,
                  Terminal& terminal) {
  const ExportOptions& options = job.options;
  if (!options.adapter.empty()) {
    return fail(ErrorCode::kUnsupportedFeature, "--calibrate calls the model without its adapter",
                "merge the adapter with PEFT and export the merged model");
  }
  std::vector<std::string> arguments = {"--model", job.request.model.string(), "--calibrate", options.calibrate};
  if (!job.request.task.empty()) arguments.insert(arguments.end(), {"--task", job.request.task});
  if (options.source.trust_remote_code) arguments.emplace_back("--trust-remote-code");
  ARGOSY_TRY(TemporaryFolder folder, TemporaryFolder::create(destination.path));
  ARGOSY_TRY(fs::path output,
             seen_by(kRangesModule, std::move(arguments), options.calibrate, "", folder.path(), environment, terminal));
  ARGOSY_TRY(job.options.backend_options.executorch.lowering.ranges, read_seen_ranges(output));
  return {};
}

bool sees_ranges(const ExportJob& job) { return job.options.backend_options.executorch.lowering.needs_ranges(); }

}  // namespace

bool sees_values(const ExportJob& job) {
  const bool is_mixed = job.options.backend_options.onnx.lowering.half == onnx::HalfMode::kMixed;
  return !job.options.calibrate.empty() && (is_mixed || sees_ranges(job));
}

Status see_values(const ExportJobs& jobs, const Backend& backend, const ExportDestination& destination,
                  const Environment& environment, Terminal& terminal) {
  for (const auto& job : jobs) {
    if (!sees_values(*job)) continue;
    ARGOSY_TRY_STATUS(sees_ranges(*job) ? see_ranges(*job, destination, environment, terminal)
                                        : see(*job, backend, destination, environment, terminal));
  }
  return {};
}

}  // namespace argosy::cli
