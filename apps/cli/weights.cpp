#include "base/text.h"
#include "commands.h"
#include "driver/write_weights.h"

namespace argosy::cli {
namespace {

Status weights(const WeightsOptions& options, Terminal& terminal) {
  ARGOSY_TRY(WeightPlan plan, WeightPlan::read(options.plan));
  ARGOSY_TRY(Checkpoint checkpoint, Checkpoint::open(options.model));
  if (!plan.unexpected().empty()) {
    terminal.log(LogLevel::kInfo, format("{} of the checkpoint's tensors are not used, {} among them",
                                         plan.unexpected().size(), argosy::quoted(plan.unexpected()[0])));
  }
  WriteWeightsOptions write;
  write.progress = terminal.progress_hook();
  return write_weights(options.output, plan, checkpoint, write);
}

}  // namespace

int run_weights(const WeightsOptions& options, Terminal& terminal) {
  Status status = weights(options, terminal);
  if (status) return kDone;
  terminal.print_error(status.error());
  return kFailed;
}

}  // namespace argosy::cli
