#pragma once

#include <string_view>
#include <vector>

#include "passes/rewrite_rules.h"

namespace argosy {

/// Whether a node is legal: the backend takes it as it is. Legal nodes are left alone.
using Takes = Leaves;

/// Nodes that a backend does not take are written in other ATen ops (passes/decompose/, passes/structures/), until it
/// takes all of them or none that is left has a decomposition.
/// `backend` is in the pass's name: "legalise-for-onnx".
Pass legalise(std::string_view backend, Takes takes);

/// The names of all ops that have a decomposition, sorted, each once.
std::vector<std::string_view> decomposed_ops();

}  // namespace argosy
