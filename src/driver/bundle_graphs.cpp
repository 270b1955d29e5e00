#include "driver/bundle_graphs.h"

#include "backends/onnx/edit.h"
#include "backends/onnx/edit_cross_states.h"
#include "backends/onnx/edit_features.h"
#include "backends/onnx/edit_inputs.h"
#include "backends/onnx/edit_media.h"
#include "backends/onnx/edit_token_embedding.h"
#include "base/check.h"
#include "base/text.h"

namespace argosy {
namespace {

/// Carries out one edit after the other.
class Editor {
 public:
  Editor(onnx::Model& model, const ComponentModels& components) : model_(model), components_(components) {}

  Status operator()(const engines::RenameInput& edit) { return onnx::rename_input(model_, edit.from, edit.to); }
  Status operator()(const engines::RenameOutput& edit) { return onnx::rename_output(model_, edit.from, edit.to); }
  Status operator()(const engines::DropOutput& edit) { return onnx::drop_output(model_, edit.name); }
  Status operator()(const engines::WidenState& edit) {
    return onnx::widen_state(model_, edit.input, edit.output, edit.size);
  }
  Status operator()(const engines::RenameDim& edit) { return onnx::rename_dim(model_, edit.from, edit.to); }
  Status operator()(const engines::OrderInputs& edit) { return onnx::order_inputs(model_, edit.names); }
  Status operator()(const engines::CastInput& edit) { return onnx::cast_input(model_, edit.name, edit.dtype); }
  Status operator()(const engines::AssumeOnes& edit) { return onnx::assume_ones(model_, edit.name, edit.like); }
  Status operator()(const engines::AcceptEmptyState& edit) {
    return onnx::accept_empty_state(model_, edit.input, edit.dim);
  }
  Status operator()(const engines::ComputeCrossStates& edit) {
    std::vector<onnx::CrossState> states;
    for (const auto& state : edit.states) states.push_back({state.computed, state.input, state.output});
    return onnx::compute_cross_states(model_, components_.at(edit.component), edit.hidden_output, edit.hidden_input,
                                      states);
  }
  Status operator()(const engines::DropFeatures& edit) { return onnx::drop_features(model_, edit.inputs); }
  Status operator()(const engines::DropInput& edit) { return onnx::drop_input(model_, edit.name); }
  Status operator()(const engines::ComputeTokenTypes& edit) {
    return onnx::compute_token_types(model_, edit.input, {edit.mask, edit.tokens, edit.media_token});
  }
  Status operator()(const engines::GroupRows& edit) { return onnx::group_rows(model_, edit.output, edit.rows); }
  Status operator()(const engines::AcceptGroupedRows& edit) { return onnx::accept_grouped_rows(model_, edit.input); }
  Status operator()(const engines::JoinOutputs& edit) { return onnx::join_outputs(model_, edit.outputs); }
  Status operator()(const engines::SpreadFeatures& edit) {
    return onnx::spread_features(model_,
                                 {edit.features, edit.more_inputs, edit.embeddings, edit.mask, edit.more_outputs});
  }
  Status operator()(const engines::TakeSpreadFeatures& edit) {
    return onnx::take_spread_features(model_, edit.embeddings, edit.mask, edit.features);
  }
  Status operator()(const engines::ComputePatchPositions& edit) {
    return onnx::compute_patch_positions(model_, edit.grid, {edit.merge_size, edit.window, edit.side});
  }

  Status operator()(const engines::PostponeOutput& edit) {
    return onnx::postpone_output(model_, edit.output, edit.last);
  }

 private:
  onnx::Model& model_;
  const ComponentModels& components_;
};

}  // namespace

Result<std::vector<onnx::NamedModel>> bundle_graphs(const ComponentModels& components,
                                                    const engines::BundlePlan& plan) {
  std::vector<onnx::NamedModel> graphs;
  for (const engines::GraphPlan& each : plan.graphs) {
    auto found = components.find(each.component);
    ARGOSY_CHECK(found != components.end(), "a plan with a component that the model lacks: " + each.component);
    onnx::NamedModel& graph = graphs.emplace_back(each.file, found->second);
    Editor editor(graph.model, components);
    for (const engines::Edit& edit : each.edits) {
      Status done = std::visit(editor, edit);
      if (!done) return fail(std::move(done.error().in(format("making {}", each.file))));
    }
  }
  return graphs;
}

}  // namespace argosy
