#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/program.h"
#include "ir/rewriter.h"
#include "passes/emitter.h"

namespace argosy::executorch {

/// Where the tokens of one call of a decoder are among all tokens, and how nodes are added to its entry graph. Batches
/// have one row. total = tokens before the call + sequence.
class DecoderCall {
 public:
  static constexpr std::string_view kPositions = "cache_position";

  DecoderCall(Program& program, Component& component, ValueId tokens, SymExpr sequence, SymExpr total, int64_t largest);
  DecoderCall(const DecoderCall&) = delete;
  /// Adds the input cache_position [sequence], and the numbers below, at the top of the graph. Once, before all else.
  Status begin();

  Program& program;
  Component& component;
  Rewriter rewriter;
  RuleContext context;
  Emitter emit;

  const ValueId tokens;           // input [1, sequence, …]
  const SymExpr sequence, total;  // total is at most `largest`
  const int64_t largest;
  ValueId positions;           // input: total - sequence, …, total - 1
  ValueId start, length, end;  // numbers: total - sequence, sequence, total

  const Graph& graph() const { return rewriter.graph(); }
  SymContext& symbols() { return *component.symbols; }
  SymExpr integer(int64_t value) { return symbols().integer(value); }
  SymExpr past() { return symbols().sub(total, sequence); }

  /// A node before everything that was in the graph, after those that this function added before.
  Result<ValueId> top(std::string_view schema, std::vector<Emitter::Named> arguments, ValueType type);
  /// Nodes that `emit` adds from now on come before that one.
  void before(NodeId node) { rewriter.insert_before(node); }

  /// [1, a, b, c] -> [1, b, a, c], without a node where the tensor is the other one's result.
  Result<ValueId> swap_middle(ValueId tensor);

 private:
  NodeId last_at_top_;
};

/// Whether a node is a permutation of [a, b, c, d] to [a, c, b, d].
bool is_middle_swap(const Program& program, const Node& node);

}  // namespace argosy::executorch
