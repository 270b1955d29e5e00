#include "border/bind_graphs.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "border/edits.h"

namespace argosy {

Status apply_edits(Program& program, Component& component, std::span<const Edit> edits) {
  return or_refused([&]() -> Status {
    for (const Edit& edit : edits) {
      // An edit may add graphs, so each edit gets a new Border.
      Border border(program, component);
      std::visit([&](const auto& one) { apply(border, one); }, edit);
    }
    return {};
  });
}

Pass bind_graphs(std::vector<BoundGraph> graphs) {
  return {"bind-graphs", [graphs = std::move(graphs)](Program& program, PassContext&) -> Result<bool> {
            std::vector<Component> components;
            for (const BoundGraph& graph : graphs) {
              const Component* found = program.find_component(graph.component);
              ARGOSY_CHECK(found != nullptr, "a graph of a component that the model lacks: " + graph.component);
              Component component = *found;
              auto copies = std::ranges::count(graphs.begin(), graphs.begin() + (&graph - graphs.data()),
                                               graph.component, &BoundGraph::component);
              if (copies > 0) component.name += format("_{}", copies + 1);
              forget_trace(component);
              // Inputs that the trace fixed are not passed by callers.
              std::erase_if(component.inputs, [](const InputSpec& input) { return !input.value.is_valid(); });
              Status done = apply_edits(program, component, graph.edits);
              if (!done) return fail(std::move(done.error().in(format("making {}", graph.file))));
              components.push_back(std::move(component));
            }
            program.components = std::move(components);
            return true;
          }};
}

}  // namespace argosy
