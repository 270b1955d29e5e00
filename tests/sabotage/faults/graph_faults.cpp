// ONNX graphs, as the engine gets them.

#include <algorithm>

#include "faults/fault.h"

namespace argosy::sabotage {
namespace {

using Graphs = std::vector<onnx::NamedModel>;

/// The first node of which `spoil` says true, over all graphs.
template <class F>
bool at_first_node(Graphs& graphs, const F& spoil) {
  for (onnx::NamedModel& each : graphs) {
    for (onnx::Graph& graph : each.model.graphs) {
      for (onnx::Node& node : graph.nodes) {
        if (spoil(each.model, node)) return true;
      }
    }
  }
  return false;
}

Result<bool> cross_outputs(Graphs& graphs) {
  for (onnx::NamedModel& each : graphs) {
    const std::vector<onnx::Ref>& outputs = each.model.graphs[0].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (size_t j = i + 1; j < outputs.size(); ++j) {
        onnx::Value &a = each.model[outputs[i]], &b = each.model[outputs[j]];
        if (a.dtype != b.dtype || a.shape != b.shape) continue;
        std::swap(a.name, b.name);
        return true;
      }
    }
  }
  return false;
}

Result<bool> cross_initializers(Graphs& graphs) {
  for (onnx::NamedModel& each : graphs) {
    std::vector<onnx::Initializer>& all = each.model.initializers;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].tensor->shape().size() != 2) continue;
      for (size_t j = i + 1; j < all.size(); ++j) {
        if (!std::ranges::equal(all[i].tensor->shape(), all[j].tensor->shape())) continue;
        if (all[i].tensor->dtype() != all[j].tensor->dtype()) continue;
        std::swap(all[i].tensor, all[j].tensor);
        return true;
      }
    }
  }
  return false;
}

Result<bool> change_axis(Graphs& graphs) {
  return at_first_node(graphs, [](onnx::Model&, onnx::Node& node) {
    if (node.op != "Softmax") return false;
    for (onnx::Attribute& attribute : node.attributes) {
      if (attribute.name == "axis") attribute.value = int64_t{-2};
    }
    if (std::ranges::find(node.attributes, "axis", &onnx::Attribute::name) == node.attributes.end())
      node.attributes.push_back({"axis", int64_t{-2}});
    return true;
  });
}

/// Old and new tokens where a graph joins them; else the past's keys and values, which an op continues.
Result<bool> turn_states(Graphs& graphs) {
  return at_first_node(graphs, [](onnx::Model& model, onnx::Node& node) {
    if (node.op == "GroupQueryAttention") {
      std::swap(node.inputs[3], node.inputs[4]);
      return true;
    }
    if (node.op != "Concat" || node.inputs.size() != 2 || !node.inputs[0].is_valid()) return false;
    const std::vector<onnx::Ref>& inputs = model.graphs[0].inputs;
    if (std::ranges::find(inputs, node.inputs[0]) == inputs.end()) return false;
    std::swap(node.inputs[0], node.inputs[1]);
    return true;
  });
}

Result<bool> compare_strictly(Graphs& graphs) {
  return at_first_node(graphs, [](onnx::Model&, onnx::Node& node) {
    if (node.op != "LessOrEqual") return false;
    node.op = "Less";
    return true;
  });
}

/// a - b becomes b - a.
Result<bool> turn_difference(Graphs& graphs) {
  return at_first_node(graphs, [](onnx::Model& model, onnx::Node& node) {
    if (node.op != "Sub" || model[node.inputs[0]].shape != model[node.inputs[1]].shape) return false;
    std::swap(node.inputs[0], node.inputs[1]);
    return true;
  });
}

/// Pairs instead of halves where an op turns them; else, where a graph does it in small ops, a half without its minus.
Result<bool> turn_pairs(Graphs& graphs) {
  return at_first_node(graphs, [](onnx::Model&, onnx::Node& node) {
    if (node.op == "Neg") {
      node.op = "Identity";
      return true;
    }
    for (onnx::Attribute& attribute : node.attributes) {
      if (attribute.name != "interleaved" && attribute.name != "rotary_interleaved") continue;
      attribute.value = std::get<int64_t>(attribute.value) == 0 ? int64_t{1} : int64_t{0};
      return true;
    }
    return false;
  });
}

/// One expert less for each token.
Result<bool> leave_expert_out(Graphs& graphs) {
  return at_first_node(graphs, [](onnx::Model&, onnx::Node& node) {
    if (node.op != "MoE") return false;
    auto chosen = std::ranges::find(node.attributes, "k", &onnx::Attribute::name);
    if (chosen == node.attributes.end() || std::get<int64_t>(chosen->value) < 2) return false;
    chosen->value = std::get<int64_t>(chosen->value) - 1;
    return true;
  });
}

/// What is added to scores of attention is not.
Result<bool> drop_score_bias(Graphs& graphs) {
  constexpr size_t kScoreBias = 5;  // among the op's inputs
  return at_first_node(graphs, [](onnx::Model&, onnx::Node& node) {
    if (node.op != "MultiHeadAttention" || node.inputs.size() <= kScoreBias || !node.inputs[kScoreBias].is_valid())
      return false;
    node.inputs.resize(kScoreBias);
    return true;
  });
}

constexpr Fault kGraphFaults[] = {
    {.name = "onnx-outputs-crossed", .what = "two outputs of a graph have each other's names", .onnx = cross_outputs},
    {.name = "onnx-weights-crossed", .what = "two weights of a graph are each other", .onnx = cross_initializers},
    {.name = "onnx-softmax-axis", .what = "softmax over queries instead of keys", .onnx = change_axis},
    {.name = "onnx-state-order", .what = "parts of a state are mistaken for each other", .onnx = turn_states},
    {.name = "onnx-rotary-pairs", .what = "rotary embeddings turn the wrong elements", .onnx = turn_pairs},
    {.name = "onnx-comparison", .what = "less instead of less or equal", .onnx = compare_strictly},
    {.name = "onnx-difference", .what = "a difference is the other way round", .onnx = turn_difference},
    {.name = "onnx-expert-left-out",
     .what = "an op of experts asks one less",
     .onnx = leave_expert_out,
     .is_of_engine = true},
    {.name = "onnx-score-bias-dropped",
     .what = "an op of attention has no mask",
     .onnx = drop_score_bias,
     .is_of_engine = true},
};

}  // namespace

std::span<const Fault> graph_faults() { return kGraphFaults; }

}  // namespace argosy::sabotage
