#include "backends/pt2/lowering.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "passes/compact_ids.h"
#include "passes/fix_dims.h"
#include "passes/structures/structures.h"

namespace argosy {
namespace {

// Namespaces that exist once torch is imported.
constexpr std::array<std::string_view, 8> kPlain = {"_operator", "aten", "builtins", "higher_order",
                                                    "math",      "prim", "prims",    "torch"};

Result<bool> find_foreign_ops(Program& program, PassContext&) {
  for (const Component& component : program.components) {
    for (const Graph& graph : component.graphs) {
      for (NodeId node : graph.nodes()) {
        const std::string& name = program.schemas[graph[node].op].name;
        std::string_view space = std::string_view(name).substr(0, name.find('.'));
        if (std::ranges::find(kPlain, space) != kPlain.end()) continue;
        Error error(ErrorCode::kUnsupportedOp,
                    format("op {} is not part of PyTorch, so a standalone program cannot call it", name),
                    "say what it consists of with argosy.register_decomposition; see docs/how-to/extend.md");
        return fail(at_node(std::move(error), program, graph, node).in(format("component {}", component.name)));
      }
    }
  }
  return false;
}

Pass refuse_foreign_ops() { return {"refuse-foreign-ops", find_foreign_ops}; }

constexpr NamedPass kPasses[] = {
    {"refuse-foreign-ops", "an op that plain PyTorch lacks is an error; changes nothing", refuse_foreign_ops},
};

}  // namespace

std::span<const NamedPass> pt2_lowering_passes() { return kPasses; }

Pipeline pt2_pipeline() {
  Pipeline pipeline;
  pipeline.add(decompose_structures());
  pipeline.add(fix_dims());
  pipeline.add(refuse_foreign_ops());
  pipeline.add(compact_ids());
  return pipeline;
}

}  // namespace argosy
