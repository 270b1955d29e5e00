#pragma once

#include <span>

#include "passes/rewrite_rules.h"

namespace argosy::executorch {

// Rules by what their ops are about, one file each.

// ---- before anything is delegated
std::span<const RewriteRule> attention_rules();
std::span<const RewriteRule> activation_rules();
std::span<const RewriteRule> arithmetic_rules();
std::span<const RewriteRule> convolution_rules();  // of three dims
std::span<const RewriteRule> creation_rules();
std::span<const RewriteRule> einsum_rules();
std::span<const RewriteRule> expert_rules();
std::span<const RewriteRule> indexing_rules();
std::span<const RewriteRule> norm_rules();
std::span<const RewriteRule> order_rules();
std::span<const RewriteRule> pooling_rules();
std::span<const RewriteRule> product_rules();
std::span<const RewriteRule> recurrent_rules();
std::span<const RewriteRule> reduction_rules();
std::span<const RewriteRule> resize_rules();
std::span<const RewriteRule> scatter_rules();

// ---- afterwards
std::span<const RewriteRule> product_kernel_rules();
std::span<const RewriteRule> convolution_kernel_rules();
std::span<const RewriteRule> norm_kernel_rules();
std::span<const RewriteRule> pooling_kernel_rules();

}  // namespace argosy::executorch
