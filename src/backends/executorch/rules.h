#pragma once

#include <span>

#include "passes/rewrite_rules.h"

namespace argosy::executorch {

// Families of rules, in the order in which passes apply them.

/// Ops that stay whole for others but have neither a kernel nor a node of XNNPACK become ones that do, as
/// attention (scaled_dot_product_attention), rms_norm, silu, einsum, group_norm. Before anything is delegated.
std::span<const RewriteRule> composite_rules();
/// What XNNPACK computes, in the forms that it takes; only for that recipe.
std::span<const RewriteRule> xnnpack_rules();
/// What is left for kernels, in forms that they take: matmul as bmm, arguments and types as kernels want them. After
/// everything is delegated; not applied to what is.
std::span<const RewriteRule> kernel_rules();

}  // namespace argosy::executorch
