#include "driver/attach_weights.h"

#include "frontends/capture/capture.h"

namespace argosy {

Status attach_weights(Program& program, const std::filesystem::path& checkpoint, const std::filesystem::path& plan,
                      Diagnostics& diagnostics) {
  ARGOSY_TRY(Checkpoint tensors, Checkpoint::open(checkpoint));
  if (plan.empty()) return attach(program, tensors, &diagnostics);
  ARGOSY_TRY(WeightPlan recipes, WeightPlan::read(plan));
  return attach(program, recipes, tensors, &diagnostics);
}

}  // namespace argosy
