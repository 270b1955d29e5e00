#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/argument.h"
#include "ir/ids.h"
#include "tensor/tensor_type.h"

namespace argosy {

/// Type of a value that is a number: a size or what is computed from sizes. `expression` may be invalid: not known.
struct SymType {
  enum class Kind : uint8_t { kInt, kFloat, kBool };
  Kind kind = Kind::kInt;
  SymExpr expression;
  friend bool operator==(const SymType&, const SymType&) = default;
};

using ValueType = std::variant<TensorType, SymType>;

/// One place that uses a value. An invalid node stands for the graph's outputs.
struct Use {
  NodeId node;
  uint32_t argument = 0;  // index of the argument (or of the graph output)
  uint32_t item = 0;      // position in a list argument
  friend bool operator==(const Use&, const Use&) = default;
};

/// A value: a graph input, a weight bound to the graph, or one output of a node.
struct Value {
  std::string name;  // unique in its graph
  ValueType type;
  NodeId producer;        // invalid: graph input or weight
  WeightId weight;        // valid: bound to that weight of the program
  StorageId storage;      // who aliases whom; invalid: not known
  std::vector<Use> uses;  // in order of creation

  const TensorType* tensor() const { return std::get_if<TensorType>(&type); }
  const SymType* number() const { return std::get_if<SymType>(&type); }
};

/// One call of an op. `arguments` has one entry per argument of the op's schema, in order, defaults filled in (more if
/// the schema is variadic).
struct Node {
  OpId op;
  std::vector<Argument> arguments;
  std::vector<ValueId> outputs;  // list returns are flattened
  LocationId location;
};

/// Nodes in topological order, and their values. Ids are indices into arenas, stable until compact(); an erased node or
/// value leaves a tombstone. Read through this class, edited only through a Rewriter. Copyable; a copy has the same
/// ids.
class Graph {
 public:
  const Node& operator[](NodeId id) const { return slot(id).node; }
  const Value& operator[](ValueId id) const;

  std::span<const ValueId> inputs() const { return inputs_; }
  /// Values bound to weights of the program, in order of addition.
  std::span<const ValueId> weights() const { return weights_; }
  /// What the graph returns: values, or constants.
  std::span<const Argument> outputs() const { return outputs_; }

  // Iteration in topological order; invalid at the end. Survives edits through a Rewriter: next() of an erased node
  // still leads on.
  NodeId first() const { return first_; }
  NodeId last() const { return last_; }
  NodeId next(NodeId id) const { return nodes_[id.index].next; }
  NodeId previous(NodeId id) const { return nodes_[id.index].previous; }
  bool comes_before(NodeId a, NodeId b) const { return slot(a).order < slot(b).order; }

  size_t node_count() const { return live_nodes_; }
  size_t value_count() const { return live_values_; }
  /// One more than the largest index ever given out: the size of side tables.
  size_t node_limit() const { return nodes_.size(); }
  size_t value_limit() const { return values_.size(); }
  bool is_live(NodeId id) const { return id.index < nodes_.size() && nodes_[id.index].is_live; }
  bool is_live(ValueId id) const { return id.index < values_.size() && values_[id.index].is_live; }
  std::optional<ValueId> find(std::string_view name) const;

  /// for (NodeId node : graph.nodes()); the body may erase the current node and insert around it.
  class NodeIterator;
  struct NodeRange {
    const Graph* graph;
    NodeIterator begin() const, end() const;
  };
  NodeRange nodes() const { return {this}; }

 private:
  friend class Rewriter;
  struct NodeSlot {
    Node node;
    NodeId previous, next;
    uint64_t order = 0;  // increases along the list, with gaps for insertions
    bool is_live = true;
  };
  struct ValueSlot {
    Value value;
    bool is_live = true;
  };
  const NodeSlot& slot(NodeId id) const;

  std::vector<NodeSlot> nodes_;
  std::vector<ValueSlot> values_;
  std::vector<ValueId> inputs_, weights_;
  std::vector<Argument> outputs_;
  NodeId first_, last_;
  size_t live_nodes_ = 0, live_values_ = 0;
  std::unordered_map<std::string, ValueId> by_name_;
};

class Graph::NodeIterator {
 public:
  NodeIterator(const Graph* graph, NodeId id) : graph_(graph), id_(id) {}
  NodeId operator*() const { return id_; }
  NodeIterator& operator++() {
    id_ = graph_->next(id_);
    return *this;
  }
  bool operator!=(const NodeIterator& other) const { return id_ != other.id_; }

 private:
  const Graph* graph_;
  NodeId id_;
};

}  // namespace argosy
