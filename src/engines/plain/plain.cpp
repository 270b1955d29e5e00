#include "engines/plain/plain.h"

#include "base/text.h"
#include "engines/companions.h"

namespace argosy::engines {

Result<BundlePlan> plan_plain(const SourceModel& model) {
  BundlePlan plan;
  for (const ComponentInterface& component : model.components)
    plan.graphs.push_back({format("{}.onnx", component.name), component.name, {}, "model.onnx.data"});
  plan.copied = companion_files(model);
  return plan;
}

}  // namespace argosy::engines
