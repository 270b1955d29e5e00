#pragma once

#include <vector>

#include "border/border.h"

namespace argosy {

/// Nodes that compute an output [batch, tokens, …], each token by itself, and nothing else.
struct TokenNodes {
  ValueId source;  // what they compute it from, with the same tokens
  std::vector<ValueId>
      values;  // their results, the last one first; empty: there are none, and the source is the output
};
TokenNodes token_nodes(const Border& border, ValueId output);

/// The source as `cut` makes it of fewer tokens, for all nodes; `cut` is given a builder that adds nodes in the right
/// place.
template <class Cut>
void cut_tokens(Border& border, std::string_view output, const TokenNodes& nodes, Cut cut) {
  if (nodes.values.empty()) {
    border.rewriter.set_output(border.output(output), cut(border.at_end()));
    return;
  }
  NodeId first = border.graph()[nodes.values.back()].producer;
  ValueId source = cut(border.before(first));
  border.rewriter.set_argument(first, 0, source);
  for (ValueId value : nodes.values) {
    TensorType fewer{border.type(value).dtype, border.type(value).shape, {}};
    fewer.shape[1] = border.type(source).shape[1];
    border.rewriter.set_type(value, std::move(fewer));
  }
}

}  // namespace argosy
