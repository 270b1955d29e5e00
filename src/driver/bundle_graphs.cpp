#include "driver/bundle_graphs.h"

#include "backends/onnx/edit.h"
#include "base/check.h"
#include "base/text.h"

namespace argosy {
namespace {

/// Carries out one edit after the other.
class Editor {
 public:
  explicit Editor(onnx::Model& model) : model_(model) {}

  Status operator()(const engines::RenameInput& edit) { return onnx::rename_input(model_, edit.from, edit.to); }
  Status operator()(const engines::RenameOutput& edit) { return onnx::rename_output(model_, edit.from, edit.to); }
  Status operator()(const engines::DropOutput& edit) { return onnx::drop_output(model_, edit.name); }
  Status operator()(const engines::WidenState& edit) {
    return onnx::widen_state(model_, edit.input, edit.output, edit.size);
  }

 private:
  onnx::Model& model_;
};

}  // namespace

Result<std::vector<onnx::NamedModel>> bundle_graphs(const ComponentModels& components,
                                                    const engines::BundlePlan& plan) {
  std::vector<onnx::NamedModel> graphs;
  for (const engines::GraphPlan& each : plan.graphs) {
    auto found = components.find(each.component);
    ARGOSY_CHECK(found != components.end(), "a plan with a component that the model lacks: " + each.component);
    onnx::NamedModel& graph = graphs.emplace_back(each.file, found->second);
    Editor editor(graph.model);
    for (const engines::Edit& edit : each.edits) {
      Status done = std::visit(editor, edit);
      if (!done) return fail(std::move(done.error().in(format("making {}", each.file))));
    }
  }
  return graphs;
}

}  // namespace argosy
