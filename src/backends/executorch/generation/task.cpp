#include "backends/executorch/generation/task.h"

namespace argosy::executorch {

Result<TaskPlan> plan_task(const Program&, const TaskOptions&, const ModelFacts&) {
  return fail(ErrorCode::kUnsupportedFeature, "tasks are not planned yet");
}

Pass bind_task(TaskPlan) {
  return {"bind-task", [](Program&, PassContext&) -> Result<bool> { return false; }};
}

}  // namespace argosy::executorch
