#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/onnx/onnx_model.h"

namespace argosy {

/// What makes the values of a graph. The graph may be anything, also one with circles: walks end after a few steps.
class GraphWalk {
 public:
  explicit GraphWalk(const OnnxModel& model);

  const OnnxGraph& graph() const { return graph_; }
  const OnnxNode& node(uint32_t index) const { return graph_.nodes[index]; }
  /// Whether it is of that op, of whatever domain.
  bool is(uint32_t node, std::string_view op) const { return graph_.ops[graph_.nodes[node].op].second == op; }

  /// The node that gives a value; nullopt: it comes from outside, or is left out.
  std::optional<uint32_t> maker(uint32_t value) const;
  /// The same, past casts.
  std::optional<uint32_t> maker_past_casts(uint32_t value) const;
  /// The same, if that is a node of this op.
  std::optional<uint32_t> made_by(uint32_t value, std::string_view op) const;
  /// The input of a node; kNothing if it has no such.
  uint32_t input(uint32_t node, size_t place) const;

  bool is_weight(uint32_t value) const;                       // or one that was cast, turned or scaled only
  std::optional<uint32_t> graph_input(uint32_t value) const;  // index of the model's inputs
  uint64_t readers(uint32_t value) const { return value < readers_.size() ? readers_[value] : 0; }

  bool is_product(uint32_t node) const;  // MatMul and the like
  /// The nearest node that `wanted` takes and that a value is computed from, through elementwise ops and changes of
  /// shape.
  template <class Wanted>
  std::optional<uint32_t> nearest(uint32_t value, Wanted wanted) const {
    constexpr size_t kSteps = 48;
    std::vector<uint32_t> reached;
    if (auto first = maker(value)) reached.push_back(*first);
    for (size_t i = 0; i < reached.size() && i < kSteps; ++i) {
      uint32_t each = reached[i];
      if (wanted(each)) return each;
      if (!is_through_[graph_.nodes[each].op]) continue;
      for (uint32_t input : graph_.nodes[each].inputs) {
        if (reached.size() >= 2 * kSteps) break;
        if (auto next = maker(input)) reached.push_back(*next);
      }
    }
    return std::nullopt;
  }

 private:
  const OnnxGraph& graph_;
  std::vector<uint32_t> makers_, inputs_;  // by value; kNothing: none
  std::vector<bool> is_initializer_;       // by value
  std::vector<uint64_t> readers_;          // by value: how many inputs of nodes it is
  std::vector<bool> is_through_;           // by op
};

}  // namespace argosy
