#pragma once

#include <string_view>

#include "border/border.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Where the tokens of one call of a decoder are among all tokens, while its entry graph is changed; builders know the
/// numbers of the call. Batches have one row. total = tokens before the call + sequence.
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

  /// [1, a, b, c] -> [1, b, a, c], without a node where the tensor is the other one's result.
  ValueId swap_middle(ValueId tensor);
};

/// Whether a node is a permutation of [a, b, c, d] to [a, c, b, d].
bool is_middle_swap(const Program& program, const Node& node);

}  // namespace argosy::executorch
