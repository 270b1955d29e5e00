#include "backends/executorch/multiply_adds.h"
#include "backends/executorch/xnnpack/builder.h"
#include "backends/executorch/xnnpack/delegate.h"
#include "base/check.h"
#include "base/text.h"

namespace argosy::executorch {

Result<Delegate> build_xnnpack_delegate(const Program& program, const Component& component, const Graph& graph,
                                        DataTable& data) {
  XnnpackBuilder builder(program, component, graph, data);
  ARGOSY_TRY_STATUS(builder.begin());
  for (NodeId node : graph.nodes()) {
    NodeView view(program, component, graph, node);
    const XnnpackOp* op = find_xnnpack_op(view.schema().name);
    ARGOSY_CHECK(op != nullptr, format("{} was delegated", view.schema().name));
    if (view.schema().name == "aten.permute.default") {
      builder.defer(view.output(), node);
      continue;
    }
    if (Status status = op->emit(view, builder); !status) {
      return fail(at_node(std::move(status).error(), program, graph, node));
    }
  }
  ARGOSY_TRY(std::string payload, builder.finish());
  return Delegate{std::string(kXnnpackBackend), std::move(payload), multiply_adds(program, component, graph)};
}

}  // namespace argosy::executorch
