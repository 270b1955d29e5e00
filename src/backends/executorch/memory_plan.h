#pragma once

#include "backends/executorch/document.h"
#include "base/result.h"

namespace argosy::executorch {

/// Gives every planned tensor and state a place: `arena`, `offset`, and Method::arenas. Two planned tensors share bytes
/// only if none is read after the other is written. Inputs are planned as well (the runtime copies them, so a call
/// never writes its caller's memory) and live from the beginning to their last reader: callers set them before each
/// call. Outputs live to the end. A tensor that is needed inside and outside a loop (a jump back) lives through all of
/// the loop. Where a value is moved to another, its bytes live as long as that one. Offsets are multiples of 16. Same
/// method, same plan. Aliases get the place of the tensor that they alias, whose life covers theirs.
Status plan_memory(Method& method);

/// The first and the last instruction that need the bytes of a planned tensor, for reports.
struct Lifetime {
  ValueIndex value = kNoValue;
  uint32_t first = 0, last = 0;  // inclusive
  uint64_t offset = 0, size = 0;
};
/// Of all tensors with bytes of their own in arena 1 that something uses, by offset and first instruction. None for a
/// method with so many jumps back (in a file of unknown origin) that finding them takes long.
std::vector<Lifetime> lifetimes(const Method& method);

/// Bytes of a tensor at its largest; the largest number there is if that overflows.
uint64_t tensor_bytes(const Tensor& tensor);

}  // namespace argosy::executorch
