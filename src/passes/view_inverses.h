#pragma once

#include <span>

#include "passes/aten_builder.h"

namespace argosy {

/// A write to a view, which has to reach the tensor that it is a view of.
struct ViewWrite {
  const OpSchema& schema;               // of the op that made the view
  std::span<const Argument> arguments;  // of that node, values as they are now
  std::span<const TensorType> outputs;  // of that node
  size_t output = 0;                    // which of them was written
  ValueId written;                      // what the view holds now
  ValueId parent;                       // what the viewed tensor held before
};

/// What the viewed tensor holds after the write. Refused: the op has no inverse.
ValueId parent_after(AtenBuilder& f, const ViewWrite& write);

/// Whether the result of an op that shares its operand's memory is just that operand.
bool is_identity(const OpSchema& schema);

}  // namespace argosy
