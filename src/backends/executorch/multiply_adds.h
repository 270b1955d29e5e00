#pragma once

#include <cstdint>

#include "ir/program.h"

namespace argosy::executorch {

/// Multiply-adds in the largest call of a graph: of linear layers, products of matrices, convolutions and attention,
/// delegated ones too (branches and bodies of loops count once). 0 for an unbounded size.
uint64_t multiply_adds(const Program& program, const Component& component, const Graph& graph);

}  // namespace argosy::executorch
