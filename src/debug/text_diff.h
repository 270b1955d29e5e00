#pragma once

#include <string>
#include <string_view>

namespace argosy {

/// The differences between two texts in the unified format, with three lines of context; empty if they are equal.
/// Minimal for texts of up to some thousand changed lines; beyond, the changed region is shown as one block.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view before_name,
                         std::string_view after_name);

}  // namespace argosy
