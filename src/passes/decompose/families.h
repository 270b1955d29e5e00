#pragma once

#include <limits>
#include <span>

#include "passes/rewrite_rules.h"

/// Decompositions: ops written in other ATen ops, for every backend that lacks them. One file per kind of op.
namespace argosy::decompose {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::span<const RewriteRule> activation();
std::span<const RewriteRule> arithmetic();
std::span<const RewriteRule> arrangement();
std::span<const RewriteRule> attention();
std::span<const RewriteRule> convolution();
std::span<const RewriteRule> creation();
std::span<const RewriteRule> einsum();
std::span<const RewriteRule> indexing();
std::span<const RewriteRule> losses();
std::span<const RewriteRule> norms();
std::span<const RewriteRule> order();
std::span<const RewriteRule> pooling();
std::span<const RewriteRule> products();
std::span<const RewriteRule> recurrent();
std::span<const RewriteRule> reductions();
std::span<const RewriteRule> resize();
std::span<const RewriteRule> scatter();
std::span<const RewriteRule> size_arithmetic();

}  // namespace argosy::decompose
