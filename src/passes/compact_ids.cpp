#include "passes/compact_ids.h"

#include "ir/rewriter.h"

namespace argosy {

Pass compact_ids() {
  return {"compact-ids", [](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            for (Component& component : program.components) {
              for (Graph& graph : component.graphs) {
                if (graph.node_limit() == graph.node_count() && graph.value_limit() == graph.value_count()) continue;
                std::vector<ValueId> moved = compact(graph);
                if (&graph == &component.graphs.front()) {
                  for (InputSpec& input : component.inputs) {
                    if (input.value.is_valid()) input.value = moved[input.value.index];
                  }
                }
                has_changed = true;
              }
            }
            return has_changed;
          }};
}

}  // namespace argosy
