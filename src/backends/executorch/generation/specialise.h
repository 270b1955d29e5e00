#pragma once

#include <map>
#include <string>

#include "ir/program.h"
#include "passes/substitute_symbols.h"

namespace argosy::executorch {

/// Replaces symbols by expressions (passes/substitute_symbols.h). Drops what was known of the trace beside its graphs
/// (guards, sample inputs, texts of formats), as it is no longer true.
void specialise(Component& component, const std::map<std::string, SymExpr>& replacements);

}  // namespace argosy::executorch
