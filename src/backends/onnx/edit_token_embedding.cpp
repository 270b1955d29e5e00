#include "backends/onnx/edit_token_embedding.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "backends/onnx/edit.h"
#include "backends/onnx/lowering.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

/// Follows what depends on features through a graph, and goes around the nodes that put them in.
class Bypass {
 public:
  Bypass(const Model& model, std::set<Ref> features) : model_(model), dependent_(std::move(features)) {}

  void visit(Node& node) {
    for (Ref& input : node.inputs) input = stand_in(input);
    if (!std::ranges::any_of(node.inputs, [&](Ref input) { return dependent_.contains(input); })) return;
    Ref other = without_features(node);
    if (other.is_valid()) {
      stand_ins_[node.outputs[0]] = other;
    } else {
      dependent_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  Ref stand_in(Ref value) const {
    auto found = stand_ins_.find(value);
    return found == stand_ins_.end() ? value : found->second;
  }
  bool is_dependent(Ref value) const { return dependent_.contains(value); }

 private:
  /// What the node gives where it puts no feature; invalid if that is not known.
  Ref without_features(const Node& node) const {
    Ref kept;
    if (node.op == "Where") {
      // The condition may depend on them too, by their number: places beyond the last feature take none.
      bool first = is_dependent(node.inputs[1]), second = is_dependent(node.inputs[2]);
      if (first != second) kept = first ? node.inputs[2] : node.inputs[1];
    } else if (node.op.starts_with("Scatter") && !is_dependent(node.inputs[1])) {
      kept = node.inputs[0];
    }
    if (!kept.is_valid() || is_dependent(kept)) return {};
    // An operand that was spread over the result is not the result.
    const auto &before = model_[kept].shape, &after = model_[node.outputs[0]].shape;
    if (before && after && before->size() != after->size()) return {};
    return kept;
  }

  const Model& model_;
  std::set<Ref> dependent_;
  std::map<Ref, Ref> stand_ins_;
};

bool is_produced(const Model& model, Ref value) {
  return std::ranges::any_of(model.graphs[0].nodes, [&](const Node& node) {
    return std::ranges::find(node.outputs, value) != node.outputs.end();
  });
}

}  // namespace

Status drop_features(Model& model, std::span<const std::string> inputs) {
  std::set<Ref> features;
  for (const std::string& name : inputs) {
    Ref input = find_input(model, name);
    if (!input.is_valid()) return fail(no_such_port(model, "input", name));
    features.insert(input);
  }
  Bypass bypass(model, features);
  for (Node& node : model.graphs[0].nodes) bypass.visit(node);
  for (Ref& output : model.graphs[0].outputs) {
    Ref value = bypass.stand_in(output);
    if (bypass.is_dependent(value)) {
      return fail(
          ErrorCode::kUnsupportedFeature,
          format("{} is not text embeddings with features put in their places: it uses {} in a way that is not known",
                 quoted(model[output].name), join({inputs.begin(), inputs.end()}, ", ")));
    }
    if (value == output) continue;
    if (is_produced(model, value) &&
        std::ranges::find(model.graphs[0].outputs, value) == model.graphs[0].outputs.end()) {
      model[value].name = std::exchange(model[output].name, "");
      output = value;
    } else {
      Ref copy = add_value(model, std::exchange(model[output], {}));
      model.graphs[0].nodes.push_back({"Identity", "", {value}, {copy}});
      output = copy;
    }
  }
  std::erase_if(model.graphs[0].inputs, [&](Ref input) { return features.contains(input); });
  eliminate_dead_nodes(model);
  return {};
}

}  // namespace argosy::onnx
