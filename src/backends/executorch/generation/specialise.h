#pragma once

#include <map>
#include <string>

#include "ir/program.h"
#include "passes/substitute_symbols.h"

namespace argosy::executorch {

/// Puts expressions in the place of symbols (passes/substitute_symbols.h). What was known of the trace beside its
/// graphs (guards, sample inputs, texts of formats) goes, as it is no longer true.
void specialise(Component& component, const std::map<std::string, SymExpr>& replacements);

}  // namespace argosy::executorch
