#include "ir/graph.h"

#include "base/check.h"
#include "base/text.h"

namespace argosy {

const Value& Graph::operator[](ValueId id) const {
  ARGOSY_CHECK(is_live(id), format("value {} is not in the graph", id.index));
  return values_[id.index].value;
}

const Graph::NodeSlot& Graph::slot(NodeId id) const {
  ARGOSY_CHECK(is_live(id), format("node {} is not in the graph", id.index));
  return nodes_[id.index];
}

std::optional<ValueId> Graph::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

Graph::NodeIterator Graph::NodeRange::begin() const { return {graph, graph->first()}; }
Graph::NodeIterator Graph::NodeRange::end() const { return {graph, NodeId{}}; }

}  // namespace argosy
