#pragma once

#include <string_view>

#include "ir/program.h"
#include "ir/rewriter.h"
#include "passes/aten_builder.h"

namespace argosy::executorch {

/// Where the tokens of one call of a decoder are among all tokens, and where nodes are added to its entry graph.
/// Batches have one row. total = tokens before the call + sequence.
class DecoderCall {
 public:
  static constexpr std::string_view kPositions = "cache_position";

  /// Adds the input cache_position [sequence], and the numbers below, at the top of the graph.
  DecoderCall(Program& program, Component& component, ValueId tokens, SymExpr sequence, SymExpr total, int64_t largest);
  DecoderCall(const DecoderCall&) = delete;

  Program& program;
  Component& component;
  Rewriter rewriter;

  const ValueId tokens;           // input [1, sequence, …]
  const SymExpr sequence, total;  // total is at most `largest`
  const int64_t largest;
  ValueId positions;           // input: total - sequence, …, total - 1
  ValueId start, length, end;  // numbers: total - sequence, sequence, total

  const Graph& graph() const { return rewriter.graph(); }
  const TensorType& type(ValueId tensor) const { return f_.type(tensor); }
  /// For looking; nodes are added by those below.
  const AtenBuilder& look() const { return f_; }
  SymContext& symbols() { return *component.symbols; }
  SymExpr integer(int64_t value) { return symbols().integer(value); }
  SymExpr past() { return symbols().sub(total, sequence); }

  // One builder, which knows the numbers above: where it adds nodes is what was asked for last.
  /// Before everything that was in the graph, after what was added there before.
  AtenBuilder& top();
  AtenBuilder& before(NodeId node);
  AtenBuilder& at_end();

  /// [1, a, b, c] -> [1, b, a, c], without a node where the tensor is the other one's result.
  ValueId swap_middle(ValueId tensor);

 private:
  RuleContext context_;
  AtenBuilder f_;
  const size_t old_nodes_;  // those with smaller numbers were in the graph
};

/// Whether a node is a permutation of [a, b, c, d] to [a, c, b, d].
bool is_middle_swap(const Program& program, const Node& node);

}  // namespace argosy::executorch
