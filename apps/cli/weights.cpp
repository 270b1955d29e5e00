#include "base/text.h"
#include "commands.h"
#include "driver/write_weights.h"
#include "extensions.h"
#include "model_source.h"
#include "python.h"

namespace argosy::cli {
namespace {

Result<WeightPlan> plan_for(const WeightsOptions& options, const std::filesystem::path& model, Checkpoint& checkpoint,
                            const Environment& environment, Terminal& terminal) {
  CaptureRequest request;
  ARGOSY_TRY_STATUS(add_adapter(options.adapter, checkpoint, request));
  if (!options.plan.empty()) return WeightPlan::read(options.plan);
  request.model = model;
  request.task = options.task;
  request.dtype = options.dtype;
  request.trust_remote_code = options.source.trust_remote_code;
  request.extensions = installed_extensions(environment);
  ARGOSY_TRY(PythonWork work, weight_plan_work(request, checkpoint));
  work.renew = options.replan;
  ARGOSY_TRY(Obtained obtained, obtain_by_python(work, environment, terminal));
  return WeightPlan::read(obtained.entry.path);
}

/// With a plan at hand the checkpoint may be any that it fits; without one its folder has the configuration too.
Result<std::filesystem::path> find_checkpoint(const WeightsOptions& options, const Environment& environment,
                                              Terminal& terminal) {
  std::error_code ignored;
  if (!options.plan.empty() && std::filesystem::exists(options.source.model, ignored)) return options.source.model;
  return obtain_model(options.source, ModelParts::kWeights, environment, terminal);
}

Status weights(const WeightsOptions& options, const Environment& environment, Terminal& terminal) {
  ARGOSY_TRY(std::filesystem::path model, find_checkpoint(options, environment, terminal));
  ARGOSY_TRY(Checkpoint checkpoint, Checkpoint::open(model));
  ARGOSY_TRY(WeightPlan plan, plan_for(options, model, checkpoint, environment, terminal));
  if (!plan.unexpected().empty()) {
    terminal.log(LogLevel::kInfo, format("{} of the checkpoint's tensors are not used, {} among them",
                                         plan.unexpected().size(), argosy::quoted(plan.unexpected()[0])));
  }
  for (const std::string& note : plan.notes()) terminal.log(LogLevel::kInfo, note);
  WriteWeightsOptions write;
  write.progress = terminal.progress_hook();
  ARGOSY_TRY_STATUS(write_weights(options.output, plan, checkpoint, write));
  std::error_code ignored;
  JsonWriter& writer = terminal.summary().members();
  writer.key("output")
      .value(options.output)
      .key("bytes")
      .value(uint64_t{std::filesystem::file_size(options.output, ignored)});
  writer.key("weights").value(uint64_t{plan.weights().size()});
  writer.key("unused").begin_array();
  for (const std::string& name : plan.unexpected()) writer.value(name);
  writer.end_array().key("notes").begin_array();
  for (const std::string& note : plan.notes()) writer.value(note);
  writer.end_array();
  return {};
}

}  // namespace

int run_weights(const WeightsOptions& options, const Environment& environment, Terminal& terminal) {
  Status status = weights(options, environment, terminal);
  if (status) return kDone;
  terminal.print_error(status.error());
  return kFailed;
}

}  // namespace argosy::cli
