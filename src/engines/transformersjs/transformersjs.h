#pragma once

#include <vector>

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

/// transformers.js 4.3, in Node and in browsers: graphs in onnx/ with a suffix of their dtype, each with data files of
/// its own, which config.json declares.
Result<BundlePlan> plan_transformersjs(const SourceModel& model);
/// Adds config.json.
Status finish_transformersjs(const SourceModel& model, const std::vector<WrittenGraph>& graphs, BundlePlan& plan);

}  // namespace argosy::engines
