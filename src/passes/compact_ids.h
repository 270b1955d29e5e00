#pragma once

#include "passes/pass.h"

namespace argosy {

/// Drops the tombstones of erased nodes and values, so that ids are dense and follow the order of the graph.
Pass compact_ids();

}  // namespace argosy
