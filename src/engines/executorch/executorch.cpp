#include "engines/executorch/executorch.h"

#include "engines/companions.h"

namespace argosy::engines {

Result<BundlePlan> plan_executorch(const SourceModel& model) {
  BundlePlan plan;
  plan.copied = companion_files(model);
  return plan;
}

}  // namespace argosy::engines
