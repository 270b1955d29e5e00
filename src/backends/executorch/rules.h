#pragma once

#include <span>

#include "passes/rewrite_rules.h"

namespace argosy::executorch {

// Families of rules, in the order in which passes apply them.

/// Puts what XNNPACK computes in the forms that it takes; only for that recipe.
std::span<const RewriteRule> xnnpack_rules();
/// Puts all other nodes in forms that kernels take: matmul as bmm, arguments and types as kernels want them. Runs after
/// nodes are delegated; not applied to these.
std::span<const RewriteRule> kernel_rules();

}  // namespace argosy::executorch
