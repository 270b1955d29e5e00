#include "see_values.h"

#include "base/text.h"
#include "driver/onnx/seen_values.h"
#include "io/temporary_folder.h"
#include "subprocess.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSeenModule = "argosy.check.seen";

Status see(ExportJob& job, const Backend& backend, const ExportDestination& destination, const Environment& environment,
           Terminal& terminal) {
  const ExportOptions& options = job.options;
  BackendOptions observed = options.backend_options;
  observed.onnx.lowering.half = onnx::HalfMode::kNone;  // the module asks for what it needs
  std::vector<std::string> arguments = {
      "--model", job.request.model.string(), "--text", options.calibrate, "--program", own_program()};
  for (const std::string& each : backend.graph_arguments(observed)) arguments.push_back("--option=" + each);
  if (observed.onnx.engine != OnnxOptions().engine)
    arguments.push_back(format("--option=--for={}", observed.onnx.engine));
  if (!options.task.empty()) arguments.push_back(format("--option=--task={}", options.task));
  if (!options.shape.empty()) arguments.push_back(format("--option=--shape={}", options.shape));
  if (!options.adapter.empty()) arguments.push_back(format("--option=--adapter={}", options.adapter));
  if (options.prefill) arguments.emplace_back("--option=--prefill");
  if (options.source.trust_remote_code) {
    arguments.emplace_back("--trust-remote-code");
    arguments.emplace_back("--option=--trust-remote-code");
  }
  ARGOSY_TRY(TemporaryFolder folder, TemporaryFolder::create(destination.path));
  fs::path output = folder.path() / "seen.json";
  arguments.insert(arguments.end(), {"--folder", folder.path().string(), "--progress", "json", "-o", output.string()});
  terminal.begin_stage(format("Looking at values on {}", options.calibrate));
  ARGOSY_TRY(PythonEnd ended,
             run_module(kSeenModule, arguments, format("values are to be seen on {}", options.calibrate), environment,
                        terminal));
  if (ended.exit_code != kDone) {
    Error error = python_failure(ended, "no values were seen", "--calibrate needs torch and transformers",
                                 ErrorCode::kInvalidInput, environment);
    error.hint += "; without --calibrate the graph's structure alone decides";
    return fail(std::move(error));
  }
  terminal.end_stage();
  ARGOSY_TRY(job.options.backend_options.onnx.lowering.seen, read_seen_values(output));
  return {};
}

}  // namespace

bool sees_values(const ExportJob& job) {
  return !job.options.calibrate.empty() && job.options.backend_options.onnx.lowering.half == onnx::HalfMode::kMixed;
}

Status see_values(const ExportJobs& jobs, const Backend& backend, const ExportDestination& destination,
                  const Environment& environment, Terminal& terminal) {
  for (const auto& job : jobs) {
    if (!sees_values(*job)) continue;
    ARGOSY_TRY_STATUS(see(*job, backend, destination, environment, terminal));
  }
  return {};
}

}  // namespace argosy::cli
