#include "backends/executorch/memory_plan.h"

namespace argosy::executorch {

Status plan_memory(Method&) { return fail(ErrorCode::kUnsupportedFeature, "memory is not planned yet"); }

std::vector<Lifetime> lifetimes(const Method&) { return {}; }

uint64_t tensor_bytes(const Tensor&) { return 0; }

}  // namespace argosy::executorch
