#include "ir/rewriter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace argosy {
namespace {

// Nodes are numbered with gaps of this size, so that many insertions fit before the list is numbered anew.
constexpr uint64_t kOrderGap = uint64_t{1} << 24;

}  // namespace

ValueId Rewriter::add_value(NewValue value) {
  ValueId id{static_cast<uint32_t>(graph_.values_.size())};
  std::string name = unique_name(std::move(value.name));
  graph_.by_name_.emplace(name, id);
  Value& added = graph_.values_.emplace_back().value;
  added.name = std::move(name);
  added.type = std::move(value.type);
  added.storage = value.storage;
  ++graph_.live_values_;
  has_changed_ = true;
  return id;
}

std::string Rewriter::unique_name(std::string name) const {
  if (name.empty()) name = format("v{}", graph_.values_.size());
  if (!graph_.by_name_.contains(name)) return name;
  // The number of values ever made is not in use as a suffix unless somebody chose such a name.
  for (size_t number = graph_.values_.size();; ++number) {
    std::string candidate = format("{}_{}", name, number);
    if (!graph_.by_name_.contains(candidate)) return candidate;
  }
}

ValueId Rewriter::add_input(NewValue value) {
  ValueId id = add_value(std::move(value));
  graph_.inputs_.push_back(id);
  return id;
}

ValueId Rewriter::add_weight(NewValue value, WeightId weight) {
  ARGOSY_CHECK(weight.is_valid(), "a weight value needs a weight");
  ValueId id = add_value(std::move(value));
  graph_.values_[id.index].value.weight = weight;
  graph_.weights_.push_back(id);
  return id;
}

void Rewriter::set_outputs(std::vector<Argument> outputs) {
  for (const Argument& output : outputs) check_defined(output, NodeId{});
  for (uint32_t i = 0; i < graph_.outputs_.size(); ++i) remove_uses(NodeId{}, i, graph_.outputs_[i]);
  graph_.outputs_ = std::move(outputs);
  for (uint32_t i = 0; i < graph_.outputs_.size(); ++i) add_uses(NodeId{}, i, graph_.outputs_[i]);
  has_changed_ = true;
}

void Rewriter::set_output(uint32_t index, Argument output) {
  ARGOSY_CHECK(index < graph_.outputs_.size(), format("the graph has no output {}", index));
  check_defined(output, NodeId{});
  remove_uses(NodeId{}, index, graph_.outputs_[index]);
  graph_.outputs_[index] = std::move(output);
  add_uses(NodeId{}, index, graph_.outputs_[index]);
  has_changed_ = true;
}

void Rewriter::erase_input(ValueId value) {
  ARGOSY_CHECK(graph_[value].uses.empty(), format("%{} still has uses", graph_[value].name));
  auto& list = graph_[value].weight.is_valid() ? graph_.weights_ : graph_.inputs_;
  auto found = std::ranges::find(list, value);
  ARGOSY_CHECK(found != list.end(), format("%{} is not an input", graph_[value].name));
  list.erase(found);
  graph_.by_name_.erase(graph_[value].name);
  graph_.values_[value.index].is_live = false;
  --graph_.live_values_;
  has_changed_ = true;
}

void Rewriter::insert_at_end(LocationId location) {
  before_ = {};
  location_ = location;
}

void Rewriter::insert_before(NodeId anchor) {
  location_ = graph_[anchor].location;
  before_ = anchor;
}

void Rewriter::insert_after(NodeId anchor) {
  location_ = graph_[anchor].location;
  before_ = graph_.next(anchor);
}

NodeId Rewriter::create(OpId op, std::vector<Argument> arguments, std::vector<NewValue> outputs, LocationId location) {
  for (const Argument& argument : arguments) check_defined(argument, before_);
  NodeId id{static_cast<uint32_t>(graph_.nodes_.size())};
  graph_.nodes_.emplace_back();
  link(id);
  for (uint32_t i = 0; i < arguments.size(); ++i) add_uses(id, i, arguments[i]);
  std::vector<ValueId> values;
  values.reserve(outputs.size());
  for (NewValue& output : outputs) {
    ValueId value = add_value(std::move(output));
    graph_.values_[value.index].value.producer = id;
    values.push_back(value);
  }
  graph_.nodes_[id.index].node = {.op = op,
                                  .arguments = std::move(arguments),
                                  .outputs = std::move(values),
                                  .location = location.is_valid() ? location : location_};
  ++graph_.live_nodes_;
  has_changed_ = true;
  return id;
}

void Rewriter::set_argument(NodeId node, uint32_t argument, Argument value) {
  ARGOSY_CHECK(argument < graph_[node].arguments.size(), format("node has no argument {}", argument));
  check_defined(value, node);
  Argument& slot = graph_.nodes_[node.index].node.arguments[argument];
  remove_uses(node, argument, slot);
  add_uses(node, argument, value);
  slot = std::move(value);
  has_changed_ = true;
}

void Rewriter::set_type(ValueId value, ValueType type) {
  ARGOSY_CHECK(graph_.is_live(value), "no such value");
  graph_.values_[value.index].value.type = std::move(type);
  has_changed_ = true;
}

void Rewriter::set_storage(ValueId value, StorageId storage) {
  ARGOSY_CHECK(graph_.is_live(value), "no such value");
  graph_.values_[value.index].value.storage = storage;
  has_changed_ = true;
}

void Rewriter::set_location(NodeId node, LocationId location) {
  ARGOSY_CHECK(graph_.is_live(node), "no such node");
  graph_.nodes_[node.index].node.location = location;
  has_changed_ = true;
}

void Rewriter::rename(ValueId value, std::string_view name) {
  Value& renamed = graph_.values_[value.index].value;
  if (renamed.name == name) return;
  graph_.by_name_.erase(renamed.name);
  renamed.name = unique_name(std::string(name));
  graph_.by_name_.emplace(renamed.name, value);
  has_changed_ = true;
}

void Rewriter::replace_uses(ValueId old_value, ValueId new_value) {
  if (old_value == new_value || graph_[old_value].uses.empty()) return;
  for (const Use& use : graph_[old_value].uses) {
    ARGOSY_CHECK(!use.node.is_valid() || is_defined_before(new_value, use.node),
                 format("%{} is defined after a use it gets", graph_[new_value].name));
  }
  std::vector<Use> uses = std::exchange(graph_.values_[old_value.index].value.uses, {});
  for (const Use& use : uses) {
    Argument& argument = use.node.is_valid() ? graph_.nodes_[use.node.index].node.arguments[use.argument]
                                             : graph_.outputs_[use.argument];
    for_each_value(argument, [&](ValueId& id, uint32_t item) {
      if (item == use.item) id = new_value;
    });
    graph_.values_[new_value.index].value.uses.push_back(use);
  }
  has_changed_ = true;
}

void Rewriter::replace(NodeId node, std::span<const ValueId> with) {
  const std::vector<ValueId> outputs = graph_[node].outputs;
  ARGOSY_CHECK(outputs.size() == with.size(), format("{} outputs replaced by {}", outputs.size(), with.size()));
  for (size_t i = 0; i < outputs.size(); ++i) replace_uses(outputs[i], with[i]);
  erase(node);
}

void Rewriter::erase(NodeId node) {
  const Node& erased = graph_[node];
  for (ValueId output : erased.outputs) {
    ARGOSY_CHECK(graph_[output].uses.empty(), format("%{} still has uses", graph_[output].name));
  }
  for (uint32_t i = 0; i < erased.arguments.size(); ++i) remove_uses(node, i, erased.arguments[i]);
  for (ValueId output : erased.outputs) {
    graph_.by_name_.erase(graph_[output].name);
    graph_.values_[output.index].is_live = false;
    --graph_.live_values_;
  }
  Graph::NodeSlot& slot = graph_.nodes_[node.index];
  (slot.previous.is_valid() ? graph_.nodes_[slot.previous.index].next : graph_.first_) = slot.next;
  (slot.next.is_valid() ? graph_.nodes_[slot.next.index].previous : graph_.last_) = slot.previous;
  if (before_ == node) before_ = slot.next;
  slot.is_live = false;  // keeps `next`, so that an iteration standing here can go on
  --graph_.live_nodes_;
  has_changed_ = true;
}

bool Rewriter::is_defined_before(ValueId value, NodeId node) const {
  NodeId producer = graph_[value].producer;
  return !producer.is_valid() || graph_.nodes_[producer.index].order < graph_.nodes_[node.index].order;
}

void Rewriter::check_defined(const Argument& argument, NodeId before) const {
  for_each_value(argument, [&](ValueId id, uint32_t) {
    ARGOSY_CHECK(graph_.is_live(id), format("value {} is not in the graph", id.index));
    ARGOSY_CHECK(!before.is_valid() || is_defined_before(id, before),
                 format("%{} is used before it is defined", graph_[id].name));
  });
}

void Rewriter::add_uses(NodeId node, uint32_t argument, const Argument& value) {
  for_each_value(
      value, [&](ValueId id, uint32_t item) { graph_.values_[id.index].value.uses.push_back({node, argument, item}); });
}

void Rewriter::remove_uses(NodeId node, uint32_t argument, const Argument& value) {
  for_each_value(value, [&](ValueId id, uint32_t item) {
    std::vector<Use>& uses = graph_.values_[id.index].value.uses;
    // From the back: the uses that go first were mostly added last.
    auto found = std::find(uses.rbegin(), uses.rend(), Use{node, argument, item});
    ARGOSY_CHECK(found != uses.rend(), format("use list of %{} is broken", graph_[id].name));
    uses.erase(std::next(found).base());
  });
}

void Rewriter::link(NodeId node) {
  Graph::NodeSlot& slot = graph_.nodes_[node.index];
  NodeId previous = before_.is_valid() ? graph_.nodes_[before_.index].previous : graph_.last_;
  slot.previous = previous;
  slot.next = before_;
  (previous.is_valid() ? graph_.nodes_[previous.index].next : graph_.first_) = node;
  (before_.is_valid() ? graph_.nodes_[before_.index].previous : graph_.last_) = node;
  uint64_t low = previous.is_valid() ? graph_.nodes_[previous.index].order : 0;
  if (!before_.is_valid()) {
    slot.order = low + kOrderGap;
    return;
  }
  uint64_t high = graph_.nodes_[before_.index].order;
  slot.order = low + (high - low) / 2;
  if (slot.order == low) renumber();
}

void Rewriter::renumber() {
  uint64_t order = 0;
  for (NodeId id = graph_.first_; id.is_valid(); id = graph_.nodes_[id.index].next) {
    order += kOrderGap;
    graph_.nodes_[id.index].order = order;
  }
}

std::vector<ValueId> compact(Graph& graph) {
  Graph fresh;
  Rewriter rewriter(fresh);
  std::vector<ValueId> moved(graph.value_limit());
  auto new_value = [&](ValueId id) {
    const Value& value = graph[id];
    return NewValue{value.name, value.type, value.storage};
  };
  auto translate = [&](Argument argument) {
    for_each_value(argument, [&](ValueId& id, uint32_t) { id = moved[id.index]; });
    return argument;
  };
  for (ValueId id : graph.inputs()) moved[id.index] = rewriter.add_input(new_value(id));
  for (ValueId id : graph.weights()) moved[id.index] = rewriter.add_weight(new_value(id), graph[id].weight);
  for (NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    std::vector<Argument> arguments;
    arguments.reserve(node.arguments.size());
    for (const Argument& argument : node.arguments) arguments.push_back(translate(argument));
    std::vector<NewValue> outputs;
    for (ValueId output : node.outputs) outputs.push_back(new_value(output));
    NodeId created = rewriter.create(node.op, std::move(arguments), std::move(outputs), node.location);
    for (size_t i = 0; i < node.outputs.size(); ++i) moved[node.outputs[i].index] = fresh[created].outputs[i];
  }
  std::vector<Argument> outputs;
  for (const Argument& output : graph.outputs()) outputs.push_back(translate(output));
  rewriter.set_outputs(std::move(outputs));
  graph = std::move(fresh);
  return moved;
}

}  // namespace argosy
