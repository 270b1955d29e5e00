#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace argosy {

/// What a new value is to be. An empty name, or one that is taken, gets a number appended.
struct NewValue {
  std::string name;
  ValueType type;
  StorageId storage = {};
};

/// The only way to build or change a Graph. Keeps use lists, names and topological order true: an edit that would break
/// them is a bug of ours and throws InternalError before anything is changed. Everything that input could get wrong is
/// checked before, by the caller.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph) {}
  const Graph& graph() const { return graph_; }
  /// Whether any edit was made through this Rewriter.
  bool has_changed() const { return has_changed_; }

  ValueId add_input(NewValue value);
  /// A value that stands for a weight of the program in this graph.
  ValueId add_weight(NewValue value, WeightId weight);
  /// Replaces all outputs of the graph.
  void set_outputs(std::vector<Argument> outputs);
  void set_output(uint32_t index, Argument output);
  /// Drops an input or a bound weight that has no uses.
  void erase_input(ValueId value);

  // Where create() puts nodes: at the end (default), or next to another node, from which they then inherit the
  // location.
  void insert_at_end(LocationId location = {});
  void insert_before(NodeId anchor);
  void insert_after(NodeId anchor);

  /// Adds a node at the insertion point. Its arguments must be defined before that point.
  NodeId create(OpId op, std::vector<Argument> arguments, std::vector<NewValue> outputs, LocationId location = {});
  void set_argument(NodeId node, uint32_t argument, Argument value);
  void set_type(ValueId value, ValueType type);
  void set_storage(ValueId value, StorageId storage);
  void set_location(NodeId node, LocationId location);
  void rename(ValueId value, std::string_view name);

  /// Makes every user of `old_value` use `new_value`, which must be defined before all of them.
  void replace_uses(ValueId old_value, ValueId new_value);
  /// Replaces a node's outputs, one for one, and erases it.
  void replace(NodeId node, std::span<const ValueId> with);
  /// No use of any output may be left.
  void erase(NodeId node);

 private:
  ValueId add_value(NewValue value);
  std::string unique_name(std::string name) const;
  bool is_defined_before(ValueId value, NodeId node) const;
  void check_defined(const Argument& argument, NodeId before) const;
  void add_uses(NodeId node, uint32_t argument, const Argument& value);
  void remove_uses(NodeId node, uint32_t argument, const Argument& value);
  void link(NodeId node);
  void renumber();

  Graph& graph_;
  NodeId before_;        // invalid: at the end
  LocationId location_;  // of the anchor
  bool has_changed_ = false;
};

/// Drops tombstones, renumbers ids densely in topological order, inputs and weights first. Invalidates all ids of the
/// graph; returns for each old value index the new id.
std::vector<ValueId> compact(Graph& graph);

}  // namespace argosy
