#pragma once

#include <string_view>

#include "border/border.h"
#include "ir/program.h"

namespace argosy::executorch {

/// The border of a decoder, with the positions of one call's tokens among all tokens; builders know these numbers.
/// Batches have one row. total = tokens before the call + sequence.
class DecoderCall : public Border {
 public:
  static constexpr std::string_view kPositions = "cache_position";

  /// Adds the input cache_position [sequence], and the numbers below, at the top of the graph.
  DecoderCall(Program& program, Component& component, ValueId tokens, SymExpr sequence, SymExpr total, int64_t largest);

  const ValueId tokens;           // input [1, sequence, …]
  const SymExpr sequence, total;  // total is at most `largest`
  const int64_t largest;
  ValueId positions;           // input: total - sequence, …, total - 1
  ValueId start, length, end;  // numbers: total - sequence, sequence, total

  SymContext& symbols() { return *component.symbols; }
  SymExpr integer(int64_t value) { return symbols().integer(value); }
  SymExpr past() { return symbols().sub(total, sequence); }

  /// [1, a, b, c] -> [1, b, a, c]; no node is added if the tensor itself is the result of such a swap.
  ValueId swap_middle(ValueId tensor);
};

/// Whether a node is a permutation of [a, b, c, d] to [a, c, b, d].
bool is_middle_swap(const Program& program, const Node& node);

}  // namespace argosy::executorch
