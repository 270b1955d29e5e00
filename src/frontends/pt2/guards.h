#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// Reads what a guard says about sizes of inputs: integers, L['x'].size()[0], + - * // % min max, comparisons, and/or
/// and parentheses. nullopt for everything else (the text is kept all the same). Nesting is bounded.
std::optional<SymExpr> parse_guard(std::string_view text, const Component& component);

/// Keeps every guard of the trace; those that are understood narrow the ranges of symbols, unify sizes that are always
/// equal, and tell which dims of inputs the trace fixed.
void add_guards(Component& component, const std::vector<std::string_view>& texts);

}  // namespace argosy
