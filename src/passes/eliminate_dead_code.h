#pragma once

#include "passes/pass.h"

namespace argosy {

/// Removes nodes whose results are unused and that have no effect: they write no argument, call no sub-graph that does,
/// and are not there for their effect alone (ops without results, such as assertions, stay). Inputs and weights stay,
/// used or not. Linear in nodes.
Pass eliminate_dead_code();

/// Drops the sub-graphs that no call is left of; the others move up.
void drop_unreachable_graphs(Component& component);

}  // namespace argosy
