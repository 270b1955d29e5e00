#pragma once

#include <cstdint>

#include "ir/program.h"

namespace argosy::executorch {

/// Products that are summed in the largest call of a graph: of linear layers, products of matrices, convolutions and
/// attention, in what it delegates too (and in branches and bodies, once). 0 for a size without a bound.
uint64_t multiply_adds(const Program& program, const Component& component, const Graph& graph);

}  // namespace argosy::executorch
