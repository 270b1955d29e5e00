#include "passes/merge_equal_nodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ir/rewriter.h"

namespace argosy {
namespace {

// Names of ops begin so.
constexpr std::string_view kRandom[] = {"aten.bernoulli",   "aten.dropout",        "aten.feature_dropout",
                                        "aten.multinomial", "aten.native_dropout", "aten.normal",
                                        "aten.poisson",     "aten.rand",           "aten.rrelu"};

bool is_random(std::string_view op) {
  return std::ranges::any_of(kRandom, [&](std::string_view prefix) { return op.starts_with(prefix); });
}

/// Indices of values that any node writes to.
std::set<uint32_t> written_values(const Program& program, const Graph& graph) {
  std::set<uint32_t> written;
  for (NodeId node : graph.nodes()) {
    const OpSchema& schema = program.schemas[graph[node].op];
    for (size_t i = 0; i < schema.arguments.size() && i < graph[node].arguments.size(); ++i) {
      if (!schema.arguments[i].is_written) continue;
      for_each_value(graph[node].arguments[i], [&](ValueId value, uint32_t) { written.insert(value.index); });
    }
  }
  return written;
}

class Merger {
 public:
  Merger(const Program& program, Graph& graph)
      : program_(program), graph_(graph), rewriter_(graph), written_(written_values(program, graph)) {}

  bool merge() {
    for (NodeId node = graph_.first(); node.is_valid();) {
      NodeId next = graph_.next(node);
      visit(node);
      node = next;
    }
    return rewriter_.has_changed();
  }

 private:
  void visit(NodeId id) {
    const Node& node = graph_[id];
    if (node.outputs.empty()) return;
    if (const SymType* number = graph_[node.outputs[0]].number(); number != nullptr && node.outputs.size() == 1) {
      if (merge_number(id, *number)) return;
    }
    std::optional<ValueId> first;
    if (!can_merge(node, first)) return;
    std::vector<NodeId>& others = seen_[{node.op.index, first ? first->index : UINT32_MAX}];
    for (NodeId other : others) {
      if (graph_[other].arguments != node.arguments || !has_same_types(graph_[other], node)) continue;
      const std::vector<ValueId> with = graph_[other].outputs;
      rewriter_.replace(id, with);
      return;
    }
    others.push_back(id);
  }

  /// A number of a known expression is the same wherever it comes from.
  bool merge_number(NodeId id, const SymType& number) {
    if (!number.expression.is_valid() || number.kind != SymType::Kind::kInt) return false;
    ValueId own = graph_[id].outputs[0];
    auto same = std::ranges::find(numbers_, number.expression, &std::pair<SymExpr, ValueId>::first);
    if (same == numbers_.end()) {
      numbers_.emplace_back(number.expression, own);
      return false;
    }
    const std::vector<ValueId> with = {same->second};
    rewriter_.replace(id, with);
    return true;
  }

  bool can_merge(const Node& node, std::optional<ValueId>& first) const {
    const OpSchema& schema = program_.schemas[node.op];
    if (schema.writes_any_argument() || is_random(schema.name)) return false;
    bool is_pure = true;
    for (const Argument& argument : node.arguments) {
      if (argument.is<GraphId>()) return false;
      for_each_value(argument, [&](ValueId value, uint32_t) {
        if (!first) first = value;
        is_pure = is_pure && !written_.contains(value.index);
      });
    }
    return is_pure;
  }

  bool has_same_types(const Node& a, const Node& b) const {
    if (a.outputs.size() != b.outputs.size()) return false;
    for (size_t i = 0; i < a.outputs.size(); ++i) {
      const TensorType *left = graph_[a.outputs[i]].tensor(), *right = graph_[b.outputs[i]].tensor();
      if ((left == nullptr) != (right == nullptr)) return false;
      if (left != nullptr && (left->dtype != right->dtype || left->shape != right->shape)) return false;
    }
    return true;
  }

  const Program& program_;
  Graph& graph_;
  Rewriter rewriter_;
  const std::set<uint32_t> written_;
  std::map<std::tuple<uint32_t, uint32_t>, std::vector<NodeId>> seen_;  // by op and first value
  std::vector<std::pair<SymExpr, ValueId>> numbers_;                    // in order of the graph
};

}  // namespace

Pass merge_equal_nodes() {
  return {"merge-equal-nodes", [](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            for (Component& component : program.components) {
              for (Graph& graph : component.graphs) has_changed |= Merger(program, graph).merge();
            }
            return has_changed;
          }};
}

}  // namespace argosy
