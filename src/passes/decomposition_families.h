#pragma once

#include <span>

#include "passes/rewrite_rules.h"

namespace argosy {

// Rules of decompose_custom_ops, a file each.
std::span<const RewriteRule> attention_decompositions();
std::span<const RewriteRule> expert_decompositions();

}  // namespace argosy
