#include <algorithm>
#include <set>
#include <unordered_map>

#include "backends/onnx/fold.h"
#include "backends/onnx/lowering.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

bool is_random(std::string_view op) { return op.starts_with("Random") || op == "Bernoulli" || op == "Multinomial"; }

bool has_graphs(const Node& node) {
  return std::ranges::any_of(node.attributes,
                             [](const Attribute& a) { return std::holds_alternative<uint32_t>(a.value); });
}

void append(std::string& key, const Attribute& attribute) {
  key += attribute.name;
  key += '=';
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, TensorSourcePtr>) {
          key += value->recipe();
        } else if constexpr (std::is_same_v<T, std::string>) {
          key += quoted(value, value.size());
        } else if constexpr (std::is_arithmetic_v<T>) {
          key += format("{}", value);
        } else {
          for (const auto& item : value) key += format("{},", item);
        }
      },
      attribute.value);
  key += static_cast<char>('0' + attribute.value.index());
}

/// One walk over all graphs: constants folded, equal nodes merged, what does nothing dropped.
class Simplifier {
 public:
  explicit Simplifier(Model& model) : model_(model), replacements_(model.values.size()) {
    for (const Graph& graph : model.graphs) outputs_.insert(graph.outputs.begin(), graph.outputs.end());
    for (const Initializer& initializer : model.initializers) add_constant(initializer.value, *initializer.tensor);
  }

  void run() { walk(0); }

 private:
  void add_constant(Ref ref, const TensorSource& tensor) {
    // Only what the translation made: reading weights would cost time, and they are not for folding.
    if (tensor.kind() != SourceKind::kLeaf || tensor.file_range()) return;
    if (tensor.elements() > kMaxFoldedElements || !tensor.recipe().starts_with("literal")) return;
    if (auto constant = read_constant(tensor)) constants_.emplace(ref.index, *std::move(constant));
  }

  Ref resolved(Ref ref) const {
    while (ref.is_valid() && replacements_[ref.index].is_valid()) ref = replacements_[ref.index];
    return ref;
  }

  void walk(uint32_t index) {
    std::vector<Node> nodes = std::move(model_.graphs[index].nodes);
    std::vector<Node> kept;
    std::vector<std::string> keys;  // of this graph: they end with it
    kept.reserve(nodes.size());
    for (Node& node : nodes) {
      for (Ref& input : node.inputs) input = resolved(input);
      bool is_output = std::ranges::any_of(node.outputs, [&](Ref output) { return outputs_.contains(output); });
      for (const Attribute& attribute : node.attributes) {
        if (const uint32_t* graph = std::get_if<uint32_t>(&attribute.value)) walk(*graph);
      }
      if (!is_output && (drop(node) || fold_away(node) || merge(node, keys))) continue;
      kept.push_back(std::move(node));
    }
    for (const std::string& key : keys) seen_.erase(key);
    Graph& graph = model_.graphs[index];
    graph.nodes = std::move(kept);
    for (Ref& output : graph.outputs) output = resolved(output);
  }

  void replace(Ref old_value, Ref new_value) { replacements_[old_value.index] = new_value; }

  /// Drops a node whose result is its input.
  bool drop(const Node& node) {
    if (node.inputs.empty() || !node.inputs[0].is_valid()) return false;
    const Value &input = model_[node.inputs[0]], &output = model_[node.outputs[0]];
    bool does_nothing = node.op == "Identity" || (node.op == "Concat" && node.inputs.size() == 1) ||
                        (node.op == "Cast" && input.dtype && input.dtype == output.dtype);
    if (!does_nothing) return false;
    replace(node.outputs[0], node.inputs[0]);
    return true;
  }

  bool fold_away(const Node& node) {
    std::vector<const Constant*> inputs;
    for (Ref input : node.inputs) {
      auto found = input.is_valid() ? constants_.find(input.index) : constants_.end();
      if (found == constants_.end()) return false;
      inputs.push_back(&found->second);
    }
    if (inputs.empty()) return false;
    std::optional<Constant> result = fold(node, inputs);
    if (!result) return false;
    TensorSourcePtr source = to_source(*result);
    auto [found, is_new] = by_recipe_.try_emplace(source->recipe(), node.outputs[0]);
    if (is_new) {
      Ref ref = node.outputs[0];
      model_[ref].shape = std::vector<Dim>(result->shape.begin(), result->shape.end());
      model_[ref].dtype = result->dtype;
      model_.initializers.push_back({ref, std::move(source)});
      constants_.emplace(ref.index, *std::move(result));
    } else {
      replace(node.outputs[0], found->second);
    }
    return true;
  }

  bool merge(const Node& node, std::vector<std::string>& keys) {
    if (is_random(node.op) || has_graphs(node)) return false;
    std::string key = format("{}:{}:{}(", node.domain, node.op, node.outputs.size());
    for (Ref input : node.inputs) key += format("{},", input.is_valid() ? static_cast<int64_t>(input.index) : -1);
    for (const Attribute& attribute : node.attributes) append(key, attribute);
    auto [found, is_new] = seen_.try_emplace(std::move(key), node.outputs);
    if (is_new) {
      keys.push_back(found->first);
      return false;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].is_valid()) replace(node.outputs[i], found->second[i]);
    }
    return true;
  }

  Model& model_;
  std::vector<Ref> replacements_;
  std::set<Ref> outputs_;
  // Looked up, never iterated.
  std::unordered_map<uint32_t, Constant> constants_;
  std::unordered_map<std::string, Ref> by_recipe_;
  std::unordered_map<std::string, std::vector<Ref>> seen_;
};

/// Drops unused nodes, innermost uses first, and then constants.
class Sweeper {
 public:
  explicit Sweeper(Model& model) : model_(model), is_used_(model.values.size()) {}

  void run() {
    sweep(0);
    std::erase_if(model_.initializers, [&](const Initializer& each) { return !is_used_[each.value.index]; });
  }

 private:
  void sweep(uint32_t index) {
    Graph& graph = model_.graphs[index];
    for (Ref output : graph.outputs) is_used_[output.index] = true;
    std::vector<Node> kept;
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      if (std::ranges::none_of(node->outputs, [&](Ref output) { return output.is_valid() && is_used_[output.index]; }))
        continue;
      for (const Attribute& attribute : node->attributes) {
        if (const uint32_t* inner = std::get_if<uint32_t>(&attribute.value)) sweep(*inner);
      }
      for (Ref input : node->inputs) {
        if (input.is_valid()) is_used_[input.index] = true;
      }
      kept.push_back(std::move(*node));
    }
    std::ranges::reverse(kept);
    model_.graphs[index].nodes = std::move(kept);
  }

  Model& model_;
  std::vector<bool> is_used_;
};

}  // namespace

void eliminate_dead_nodes(Model& model) { Sweeper(model).run(); }

Status optimize(Model& model) {
  Simplifier(model).run();
  eliminate_dead_nodes(model);
  return {};
}

}  // namespace argosy::onnx
