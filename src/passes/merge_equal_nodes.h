#pragma once

#include "passes/pass.h"

namespace argosy {

/// "merge-equal-nodes": nodes that compute the same from the same values become one, and a size that is already a
/// number or a value is not computed again. Random ops, nodes that write and nodes that read written memory stay. Runs
/// after functionalise.
Pass merge_equal_nodes();

}  // namespace argosy
