#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// The program as text (docs/ir.md): deterministic, complete but for the bytes of weights.
std::string print(const Program& program);
/// One graph's body, for dumps and messages.
std::string print(const Program& program, const Component& component, const Graph& graph);

/// Reads what print() writes, or what a person writes for a test. Weights get shape_only() sources. parse(print(p)) has
/// no difference() to p. Hostile text gives an error with line and column; nesting and sizes are bounded.
Result<Program> parse(std::string_view text);

/// The first difference in meaning between two programs, in words; nullopt if there is none. Ids, weights' sources,
/// schemas that no node uses and the order of tables do not count.
std::optional<std::string> difference(const Program& a, const Program& b);

}  // namespace argosy
