#pragma once

#include "backends/executorch/document.h"
#include "base/result.h"

namespace argosy::executorch {

/// Gives every planned tensor and state a place: `arena`, `offset`, and Method::arenas. Two planned tensors share bytes
/// only if none is read after the other is written; inputs and outputs live through the whole call, and so does, inside
/// a loop (a jump back), what is alive where the loop begins. Offsets are multiples of 16. Same method, same plan.
/// Aliases get the place of what they alias, whose life covers theirs.
Status plan_memory(Method& method);

/// From which instruction on and up to which one the bytes of a planned tensor are needed, for reports.
struct Lifetime {
  ValueIndex value = kNoValue;
  uint32_t first = 0, last = 0;  // inclusive
  uint64_t offset = 0, size = 0;
};
/// Of all tensors with bytes of their own in arena 1, by offset and first instruction.
std::vector<Lifetime> lifetimes(const Method& method);

/// Bytes of a tensor at its largest.
uint64_t tensor_bytes(const Tensor& tensor);

}  // namespace argosy::executorch
