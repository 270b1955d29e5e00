#include "ir/program.h"

#include "base/text.h"

namespace argosy {

LocationId LocationTable::intern(ModelLocation location) {
  std::string key = format("{}\n{}\n{}\n{}\n{}", location.file, location.line, location.module_path,
                           location.class_name, location.call_index);
  auto [entry, is_new] = by_key_.try_emplace(std::move(key), LocationId{static_cast<uint32_t>(locations_.size())});
  if (is_new) locations_.push_back(std::move(location));
  return entry->second;
}

std::optional<WeightId> Program::find_weight(std::string_view name) const {
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (weights[i].name == name) return WeightId{i};
  }
  return std::nullopt;
}

const Component* Program::find_component(std::string_view name) const {
  for (const Component& component : components) {
    if (component.name == name) return &component;
  }
  return nullptr;
}

std::string describe(const Program& program, const Graph& graph, NodeId node) {
  std::vector<std::string> outputs;
  for (ValueId output : graph[node].outputs) outputs.push_back('%' + graph[output].name);
  std::string text = join(outputs, ", ");
  if (!text.empty()) text += " = ";
  return format("node {}{}(…)", text, program.schemas[graph[node].op].name);
}

Error at_node(Error error, const Program& program, const Graph& graph, NodeId node) {
  LocationId location = graph[node].location;
  std::optional<ModelLocation> where;
  if (location.is_valid()) where = program.locations[location];
  error.in(describe(program, graph, node), std::move(where));
  return error;
}

}  // namespace argosy
