#pragma once

#include <utility>
#include <vector>

#include "backends/onnx/cached_attention.h"
#include "ir/rewriter.h"
#include "passes/aten_builder.h"
#include "passes/structures/position_factors.h"

namespace argosy::onnx {

/// What GroupQueryAttention computes queries, keys and values from. All are [batch, tokens, heads * width].
struct AttentionInputs {
  ValueId query;
  ValueId key, value;  // invalid: `query` holds all three, one behind the other
  ValueId cos, sin;    // factors by position, [positions, turned / 2]; invalid: the op turns nothing
  bool pairs = false;  // elements at even and odd places are turned, not halves
};

/// Moves what comes before attention into the op, where the op can do it: rotary embeddings, and the split of one
/// product into queries, keys and values. Three products with weights become one, also where the op cannot split it.
class AttentionInputFinder {
 public:
  AttentionInputFinder(Program& program, Component& component, Rewriter& rewriter, const GroupQueryOptions& options)
      : program_(program), component_(component), rewriter_(rewriter), options_(options) {}

  /// Of attention with heads of that width, where the rewriter adds nodes before it.
  AttentionInputs find(AtenBuilder& f, NodeId attention, AttentionInputs inputs, int64_t width);

 private:
  void take_rotary(AtenBuilder& f, AttentionInputs& inputs, int64_t width);
  bool take_slices(const AtenBuilder& f, AttentionInputs& inputs) const;
  bool join_products(AtenBuilder& f, NodeId attention, AttentionInputs& inputs);
  /// Weights as one, joined along their first dim; invalid: they cannot be.
  ValueId joined(const AtenBuilder& f, const std::vector<ValueId>& weights);
  ValueId table(AtenBuilder& f, const PositionFactors& factors, DType dtype);
  bool are_counted(ValueId positions) const;

  Program& program_;
  Component& component_;
  Rewriter& rewriter_;
  const GroupQueryOptions& options_;
  std::vector<std::pair<PositionFactors, ValueId>> tables_;  // of one dtype each; layers share them
};

}  // namespace argosy::onnx
