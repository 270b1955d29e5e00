#pragma once

#include <string_view>

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

/// ONNX Runtime GenAI: a folder with genai_config.json and the graphs that it names.
namespace argosy::engines {

Result<BundlePlan> plan_genai(const SourceModel& model);

}  // namespace argosy::engines
