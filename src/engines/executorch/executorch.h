#pragma once

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

/// What lies beside model.pte: tokenizer, configuration, processor. The program itself is the backend's business, and
/// so how it is used (executorch_usage) is known when that is done.
Result<BundlePlan> plan_executorch(const SourceModel& model);

}  // namespace argosy::engines
