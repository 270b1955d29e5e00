#pragma once

#include "passes/pass.h"

namespace argosy {

/// "functionalise": afterwards no node writes an argument. Every read of memory that was written before gets the value
/// that it has by then, through views as well; which values share memory is known from storage ids, and from schemas
/// where a value has none. What is written to an input or a buffer becomes a result of the graph (before the others, as
/// torch has it); a write to a parameter or constant ends with the call, with a note. Linear in the nodes and in the
/// views that are made again.
///
/// Refused, with the node and its place: writes through views that have no inverse (expand, as_strided, unfold), writes
/// to memory that may or may not be shared, ops that write and have no functional form (resize_), writes to an operand
/// inside a sub-graph.
Pass functionalise();

}  // namespace argosy
