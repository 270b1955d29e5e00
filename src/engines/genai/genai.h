#pragma once

#include <string_view>

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

/// ONNX Runtime GenAI: a folder with genai_config.json and the graphs that it names.
namespace argosy::engines {

Result<BundlePlan> plan_genai(const SourceModel& model);
/// Says in the configuration whether caches grow in place.
Status finish_genai(const SourceModel& model, const std::vector<WrittenGraph>& graphs, BundlePlan& plan);

}  // namespace argosy::engines
