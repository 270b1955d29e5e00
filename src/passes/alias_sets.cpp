#include "passes/alias_sets.h"

#include <numeric>
#include <unordered_map>
#include <utility>

#include "ir/aliasing.h"

namespace argosy {

AliasSets::AliasSets(const Program& program, const Graph& graph) : first_(graph.value_limit()) {
  std::iota(first_.begin(), first_.end(), 0);
  std::unordered_map<StorageId, ValueId> by_storage;
  auto add = [&](ValueId value) {
    if (!graph[value].storage.is_valid()) return;
    auto [known, is_new] = by_storage.try_emplace(graph[value].storage, value);
    if (!is_new) unite(known->second, value);
  };
  for (ValueId value : graph.inputs()) add(value);
  for (ValueId value : graph.weights()) add(value);
  for (NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      add(node.outputs[i]);
      if (graph[node.outputs[i]].tensor() == nullptr) continue;
      OutputAlias alias = alias_of(program.schemas[node.op], graph, node.arguments, graph[node.outputs[i]].type, i);
      if (alias.kind == Aliasing::kFresh || !alias.operand) continue;
      const ValueId* operand = node.arguments[*alias.operand].get_if<ValueId>();
      if (operand == nullptr) continue;
      bool is_recorded = graph[*operand].storage.is_valid() && graph[node.outputs[i]].storage.is_valid();
      if (!is_recorded) unite(*operand, node.outputs[i]);
    }
  }
  for (uint32_t i = 0; i < first_.size(); ++i) first_[i] = find(i);
}

// Paths are halved on the way, and the smaller index stays on top.
uint32_t AliasSets::find(uint32_t value) {
  while (first_[value] != value) value = first_[value] = first_[first_[value]];
  return value;
}

void AliasSets::unite(ValueId a, ValueId b) {
  uint32_t low = find(a.index), high = find(b.index);
  if (low > high) std::swap(low, high);
  first_[high] = low;
}

}  // namespace argosy
