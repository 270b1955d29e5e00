#pragma once

#include <map>
#include <string>

#include "ir/program.h"
#include "ir/rewriter.h"

namespace argosy {

/// Puts expressions in the place of symbols, by name, in the types of all values of a component and in the conditions
/// of its guards. Numbers that are then known stand where the values stood that computed them, except among operands of
/// higher-order ops. Whether anything has changed.
bool substitute_symbols(Component& component, const std::map<std::string, SymExpr>& replacements);

/// A number stands where a value stood, except among operands of higher-order ops.
void replace_number(Rewriter& rewriter, ValueId old_value, int64_t number);

}  // namespace argosy
