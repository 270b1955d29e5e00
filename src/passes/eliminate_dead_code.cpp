#include "passes/eliminate_dead_code.h"

#include "ir/rewriter.h"

namespace argosy {
namespace {

bool has_effect(const Program& program, const std::vector<bool>& graph_has_effect, const Node& node) {
  if (node.outputs.empty()) return true;
  if (program.schemas[node.op].writes_any_argument()) return true;
  for (const Argument& argument : node.arguments) {
    if (const GraphId* called = argument.get_if<GraphId>()) {
      if (graph_has_effect[called->index]) return true;
    }
  }
  return false;
}

bool is_unused(const Graph& graph, const Node& node) {
  for (ValueId output : node.outputs) {
    if (!graph[output].uses.empty()) return false;
  }
  return true;
}

// Users come after what they use, so one walk from the back finds whole dead chains.
bool eliminate_in(Graph& graph, const Program& program, const std::vector<bool>& graph_has_effect) {
  Rewriter rewriter(graph);
  for (NodeId node = graph.last(); node.is_valid();) {
    NodeId previous = graph.previous(node);
    if (is_unused(graph, graph[node]) && !has_effect(program, graph_has_effect, graph[node])) rewriter.erase(node);
    node = previous;
  }
  return rewriter.has_changed();
}

// Sub-graphs have larger ids than the graphs that call them, so a walk from the back knows callees first.
std::vector<bool> graphs_with_effects(const Program& program, const Component& component) {
  std::vector<bool> result(component.graphs.size(), false);
  for (size_t i = component.graphs.size(); i-- > 0;) {
    const Graph& graph = component.graphs[i];
    for (NodeId node : graph.nodes()) {
      if (has_effect(program, result, graph[node])) result[i] = true;
    }
  }
  return result;
}

/// Which graphs calls still lead to, from the entry on.
std::vector<bool> reachable_graphs(const Component& component) {
  std::vector<bool> is_reached(component.graphs.size(), false);
  std::vector<uint32_t> waiting = {0};
  is_reached[0] = true;
  while (!waiting.empty()) {
    const Graph& graph = component.graphs[waiting.back()];
    waiting.pop_back();
    for (NodeId node : graph.nodes()) {
      for (const Argument& argument : graph[node].arguments) {
        const GraphId* called = argument.get_if<GraphId>();
        if (called == nullptr || is_reached[called->index]) continue;
        is_reached[called->index] = true;
        waiting.push_back(called->index);
      }
    }
  }
  return is_reached;
}

}  // namespace

void drop_unreachable_graphs(Component& component) {
  std::vector<bool> is_reached = reachable_graphs(component);
  std::vector<GraphId> new_ids(component.graphs.size());
  std::vector<Graph> kept;
  for (size_t i = 0; i < component.graphs.size(); ++i) {
    if (!is_reached[i]) continue;
    new_ids[i] = GraphId{static_cast<uint32_t>(kept.size())};
    kept.push_back(std::move(component.graphs[i]));
  }
  component.graphs = std::move(kept);
  if (component.graphs.size() == new_ids.size()) return;
  for (Graph& graph : component.graphs) {
    Rewriter rewriter(graph);
    for (NodeId node : graph.nodes()) {
      for (uint32_t i = 0; i < graph[node].arguments.size(); ++i) {
        const GraphId* called = graph[node].arguments[i].get_if<GraphId>();
        if (called != nullptr) rewriter.set_argument(node, i, new_ids[called->index]);
      }
    }
  }
}

Pass eliminate_dead_code() {
  return {"eliminate-dead-code", [](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            for (Component& component : program.components) {
              std::vector<bool> effects = graphs_with_effects(program, component);
              bool has_component_changed = false;
              for (Graph& graph : component.graphs) has_component_changed |= eliminate_in(graph, program, effects);
              if (has_component_changed && component.graphs.size() > 1) drop_unreachable_graphs(component);
              has_changed |= has_component_changed;
            }
            return has_changed;
          }};
}

}  // namespace argosy
