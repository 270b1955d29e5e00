#pragma once

#include "passes/pass.h"

namespace argosy {

/// "merge-equal-nodes": what is computed twice from the same values is computed once, and a size that has a number or a
/// value already is not asked for again. Random numbers, nodes that write and nodes that read what is written stay.
/// Runs after functionalise.
Pass merge_equal_nodes();

}  // namespace argosy
