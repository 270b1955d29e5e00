#pragma once

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

/// The files beside model.pte: tokenizer, configuration, processor. The program itself is made by the backend, so its
/// usage (executorch_usage) is known only after that.
Result<BundlePlan> plan_executorch(const SourceModel& model);

}  // namespace argosy::engines
