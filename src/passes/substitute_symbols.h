#pragma once

#include <map>
#include <string>

#include "ir/program.h"
#include "ir/rewriter.h"

namespace argosy {

/// Replaces symbols, by name, with expressions: in the types of all values of a component and in the conditions of its
/// guards. Values that are then known to be a number are replaced by it, except among operands of higher-order ops.
/// Returns whether anything has changed.
bool substitute_symbols(Component& component, const std::map<std::string, SymExpr>& replacements);

/// Replaces a value by a number, except among operands of higher-order ops.
void replace_number(Rewriter& rewriter, ValueId old_value, int64_t number);

}  // namespace argosy
