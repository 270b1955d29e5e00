#pragma once

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

/// The components under their own names, over one file of weights.
Result<BundlePlan> plan_plain(const SourceModel& model);

}  // namespace argosy::engines
