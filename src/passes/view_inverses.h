#pragma once

#include <functional>
#include <span>

#include "passes/emitter.h"

namespace argosy {

/// A view, something was written to it, and the tensor that it is a view of has to get that.
struct ViewWrite {
  const OpSchema& schema;               // of the op that made the view
  std::span<const Argument> arguments;  // of that node, values as they are now
  std::span<const TensorType> outputs;  // of that node
  size_t output = 0;                    // which of them was written
  ValueId written;                      // what the view holds now
  ValueId parent;                       // what the viewed tensor held before
};

/// Emits what the viewed tensor holds after the write. Error: the op has no inverse.
Result<ValueId> emit_parent(Emitter& emit, const ViewWrite& write);

/// Whether an op that hands out its operand's memory hands out just that operand.
bool is_identity(const OpSchema& schema);

}  // namespace argosy
