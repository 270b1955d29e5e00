#pragma once

#include <span>

#include "passes/rewrite_rules.h"

namespace argosy::executorch {

// Families of rules, in the order in which passes apply them.

/// What XNNPACK computes, in the forms that it takes; only for that recipe.
std::span<const RewriteRule> xnnpack_rules();
/// What is left for kernels, in forms that they take: matmul as bmm, arguments and types as kernels want them. After
/// everything is delegated; not applied to what is.
std::span<const RewriteRule> kernel_rules();

}  // namespace argosy::executorch
