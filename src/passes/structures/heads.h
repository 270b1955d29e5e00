#pragma once

#include "passes/aten_builder.h"

namespace argosy {

/// The order of dims that swaps heads and tokens.
inline const std::vector<int64_t> kHeadsAndTokens = {0, 2, 1, 3};

/// Nodes of a component's entry graph that are attention: PyTorch's op, or the structure.
std::vector<NodeId> attention_nodes(const Program& program, const Component& component);

/// Keys or values [batch, heads, tokens, width] before each head was repeated for the query heads that share it; the
/// tensor itself if none was.
ValueId before_repeat(const AtenBuilder& f, ValueId tensor);

/// [batch, heads, tokens, width] as [batch, tokens, heads * width]. No node is added if that is where it came from.
ValueId merge_heads(AtenBuilder& f, ValueId tensor);

/// Whether a slice takes every so many elements of the last dim, from `start` on. Where it ends follows from its size.
bool starts_at(const AtenBuilder& f, const Node& slice, int64_t start, int64_t every = 1);

/// The reverse of merge_heads.
ValueId split_heads(AtenBuilder& f, ValueId tensor, int64_t heads);

}  // namespace argosy
