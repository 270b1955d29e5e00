#include "backends/executorch/xnnpack/delegate.h"

#include <algorithm>
#include <map>

#include "backends/executorch/xnnpack/op.h"
#include "base/check.h"
#include "base/text.h"
#include "ir/rewriter.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kDelegate = "higher_order.delegate";

/// By index of the program's weights: those that some component writes, in place or as an output. What one writes
/// another may read.
std::vector<bool> find_written(const Program& program) {
  std::vector<bool> is_written(program.weights.size(), false);
  for (const Component& component : program.components) {
    const Graph& graph = component.entry();
    for (NodeId id : graph.nodes()) {
      const OpSchema& schema = program.schemas[graph[id].op];
      for (size_t i = 0; i < graph[id].arguments.size() && i < schema.arguments.size(); ++i) {
        if (!schema.arguments[i].is_written) continue;
        for_each_value(graph[id].arguments[i], [&](ValueId value, uint32_t) {
          if (graph[value].weight.is_valid()) is_written[graph[value].weight.index] = true;
        });
      }
    }
    for (const OutputSpec& output : component.outputs) {
      if (output.kind != OutputKind::kBufferMutation && output.kind != OutputKind::kParameterMutation) continue;
      if (std::optional<WeightId> weight = program.find_weight(output.target)) is_written[weight->index] = true;
    }
  }
  return is_written;
}

/// Divides a graph into steps: what kernels compute, then what XNNPACK computes, then kernels again. The step of a
/// delegated node is the number of times that any path to it enters XNNPACK, so that all nodes of a step make one part:
/// a path that leaves a part can only come back in a later one.
class Steps {
 public:
  Steps(const Program& program, const Component& component, const std::vector<bool>& is_written)
      : program_(program), graph_(component.entry()), is_written_(is_written) {
    ops_.resize(graph_.node_limit());
    step_.resize(graph_.node_limit());
    is_light_.resize(graph_.node_limit());
    for (NodeId node : graph_.nodes()) {
      ops_[node.index] = find_xnnpack_op(NodeView(program, component, graph_, node, &is_written));
    }
    // When nodes are left to the kernels, the parts around them may become one.
    do {
      assign();
    } while (trim() || drop());
  }

  bool is_delegated(NodeId node) const { return ops_[node.index] != nullptr; }
  uint32_t step(NodeId node) const { return step_[node.index]; }
  uint32_t count() const { return count_; }
  const std::vector<bool>& is_written() const { return is_written_; }

 private:
  /// Step of a node, at least `least`.
  void assign() {
    std::map<uint32_t, Buffer> buffers;
    std::vector<uint32_t> root(graph_.value_limit(), kNone);
    for (ValueId value : graph_.weights()) {
      if (is_written_[graph_[value].weight.index]) root[value.index] = value.index;
    }
    count_ = 0;
    for (NodeId id : graph_.nodes()) {
      const Node& node = graph_[id];
      const OpSchema& schema = program_.schemas[node.op];
      uint32_t least = 0;
      auto after = [&](NodeId earlier) {
        if (!earlier.is_valid()) return;
        bool enters = is_delegated(id) && !is_delegated(earlier);
        least = std::max(least, step_[earlier.index] + (enters ? 1 : 0));
      };
      for (size_t i = 0; i < node.arguments.size(); ++i) {
        bool is_write = i < schema.arguments.size() && schema.arguments[i].is_written;
        for_each_value(node.arguments[i], [&](ValueId value, uint32_t) {
          // Sizes come from the types of results.
          if (is_delegated(id) && graph_[value].number() != nullptr) return;
          after(graph_[value].producer);
          if (root[value.index] == kNone) return;
          // Memory that is written: reads and writes keep their order.
          Buffer& buffer = buffers[root[value.index]];
          after(buffer.writer);
          if (is_write) {
            for (NodeId reader : buffer.readers) after(reader);
          }
        });
      }
      if (is_delegated(id)) least = std::max(least, 1U);
      step_[id.index] = least;
      is_light_[id.index] = is_delegated(id) && ops_[id.index]->effort != Effort::kHeavy;
      for (const Argument& argument : node.arguments) {
        for_each_value(argument, [&](ValueId value, uint32_t) {
          NodeId producer = graph_[value].producer;
          if (producer.is_valid() && is_delegated(producer) && !is_light_[producer.index]) is_light_[id.index] = false;
        });
      }
      count_ = std::max(count_, least);
      track(id, schema, buffers, root);
    }
  }

  struct Buffer {
    NodeId writer;
    std::vector<NodeId> readers;  // since then
  };

  void track(NodeId id, const OpSchema& schema, std::map<uint32_t, Buffer>& buffers, std::vector<uint32_t>& root) {
    const Node& node = graph_[id];
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      bool is_write = i < schema.arguments.size() && schema.arguments[i].is_written;
      for_each_value(node.arguments[i], [&](ValueId value, uint32_t) {
        if (root[value.index] == kNone) return;
        Buffer& buffer = buffers[root[value.index]];
        if (is_write) {
          buffer = {id, {}};
          for (ValueId output : node.outputs) root[output.index] = root[value.index];
        } else {
          buffer.readers.push_back(id);
        }
      });
    }
  }

  /// Leaves light nodes at the beginning of a part to the kernels if a kernel needs their results: the part would have
  /// to end there. True: there was such a node.
  bool trim() {
    bool has_trimmed = false;
    for (NodeId id = graph_.last(); id.is_valid(); id = graph_.previous(id)) {
      if (!is_delegated(id) || ops_[id.index]->effort == Effort::kHeavy) continue;
      bool is_first = true, is_needed = false;
      for (const Argument& argument : graph_[id].arguments) {
        for_each_value(argument, [&](ValueId value, uint32_t) {
          NodeId producer = graph_[value].producer;
          if (producer.is_valid() && is_delegated(producer) && !is_light_head(producer)) is_first = false;
        });
      }
      for (ValueId output : graph_[id].outputs) {
        for (const Use& use : graph_[output].uses) {
          is_needed = is_needed || (use.node.is_valid() && !is_delegated(use.node));
        }
      }
      if (!is_first || !is_needed) continue;
      ops_[id.index] = nullptr;
      has_trimmed = true;
    }
    return has_trimmed;
  }

  /// Whether a delegated node and all that it is computed from in XNNPACK is light.
  bool is_light_head(NodeId id) const { return is_light_[id.index]; }

  /// Leaves parts that are not worth the call to the kernels. True: there were some.
  bool drop() {
    std::vector<Effort> best(count_ + 1, Effort::kMoves);
    std::vector<int> computing(count_ + 1, 0);
    for (NodeId node : graph_.nodes()) {
      if (!is_delegated(node)) continue;
      best[step(node)] = std::max(best[step(node)], ops_[node.index]->effort);
      computing[step(node)] += ops_[node.index]->effort == Effort::kMoves ? 0 : 1;
    }
    bool has_dropped = false;
    for (NodeId node : graph_.nodes()) {
      if (!is_delegated(node) || best[step(node)] == Effort::kHeavy || computing[step(node)] > 3) continue;
      ops_[node.index] = nullptr;
      has_dropped = true;
    }
    return has_dropped;
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  const Program& program_;
  const Graph& graph_;
  const std::vector<bool>& is_written_;
  std::vector<const XnnpackOp*> ops_;  // by node; null: a kernel computes it
  std::vector<uint32_t> step_;         // by node
  std::vector<bool> is_light_;         // by node: delegated, with nothing heavy before it in XNNPACK
  uint32_t count_ = 0;
};

/// The entry graph anew: nodes in the order of their steps, each part a call.
class Outliner {
 public:
  Outliner(Program& program, Component& component, const Steps& steps)
      : program_(program),
        component_(component),
        old_(component.entry()),
        steps_(steps),
        rewriter_(entry_),
        ids_(old_.value_limit()) {}

  Status run() {
    find_live();
    ARGOSY_TRY(OpId delegate, find_delegate());
    for (ValueId input : old_.inputs()) ids_[input.index] = rewriter_.add_input(copy_of(input));
    std::vector<std::vector<NodeId>> parts(steps_.count() + 1), others(steps_.count() + 1);
    for (NodeId node : old_.nodes()) {
      if (is_live_[node.index]) (steps_.is_delegated(node) ? parts : others)[steps_.step(node)].push_back(node);
    }
    for (uint32_t step = 0; step <= steps_.count(); ++step) {
      if (!parts[step].empty()) call(delegate, parts[step]);
      for (NodeId node : others[step]) {
        std::vector<ValueId> results = copy(rewriter_, node, [&](ValueId value) { return here(value); });
        for (size_t i = 0; i < results.size(); ++i) ids_[old_[node].outputs[i].index] = results[i];
      }
    }
    std::vector<Argument> outputs(old_.outputs().begin(), old_.outputs().end());
    for (Argument& output : outputs) {
      for_each_value(output, [&](ValueId& value, uint32_t) { value = here(value); });
    }
    rewriter_.set_outputs(std::move(outputs));
    for (InputSpec& input : component_.inputs) {
      if (input.value.is_valid()) input.value = ids_[input.value.index];
    }
    component_.graphs[0] = std::move(entry_);
    for (Graph& graph : bodies_) component_.graphs.push_back(std::move(graph));
    return {};
  }

 private:
  Result<OpId> find_delegate() {
    std::optional<OpId> op = program_.schemas.find(kDelegate);
    ARGOSY_CHECK(op.has_value(), "no schema for delegates");
    return *op;
  }

  /// Sizes that only delegated nodes asked for are not needed any more.
  void find_live() {
    is_live_.assign(old_.node_limit(), false);
    for (NodeId id = old_.last(); id.is_valid(); id = old_.previous(id)) {
      bool is_size = !old_[id].outputs.empty();
      bool has_use = false;
      for (ValueId output : old_[id].outputs) {
        is_size = is_size && old_[output].number() != nullptr;
        for (const Use& use : old_[output].uses) {
          has_use = has_use || !use.node.is_valid() ||
                    (is_live_[use.node.index] && !(is_size && steps_.is_delegated(use.node)));
        }
      }
      is_live_[id.index] = has_use || !is_size;
    }
  }

  NewValue copy_of(ValueId value) const { return {old_[value].name, old_[value].type, old_[value].storage}; }

  /// The value in the new entry graph. Weights are bound when they are first needed.
  ValueId here(ValueId value) {
    if (!ids_[value.index].is_valid()) {
      ARGOSY_CHECK(old_[value].weight.is_valid(), format("{} is used before it is defined", old_[value].name));
      ids_[value.index] = rewriter_.add_weight(copy_of(value), old_[value].weight);
    }
    return ids_[value.index];
  }

  template <class Lookup>
  std::vector<ValueId> copy(Rewriter& to, NodeId id, Lookup lookup) {
    const Node& node = old_[id];
    std::vector<Argument> arguments = node.arguments;
    for (Argument& argument : arguments) {
      for_each_value(argument, [&](ValueId& value, uint32_t) { value = lookup(value); });
    }
    std::vector<NewValue> outputs;
    for (ValueId output : node.outputs) outputs.push_back(copy_of(output));
    NodeId copied = to.create(node.op, std::move(arguments), std::move(outputs), node.location);
    return to.graph()[copied].outputs;
  }

  void call(OpId delegate, const std::vector<NodeId>& part) {
    Graph body;
    Rewriter inside(body);
    std::map<ValueId, ValueId> inner;
    ValueList operands;
    auto lookup = [&](ValueId value) {
      auto [found, is_new] = inner.try_emplace(value);
      if (!is_new) return found->second;
      NewValue copied = copy_of(value);
      copied.storage = {};
      WeightId weight = old_[value].weight;
      if (weight.is_valid() && !steps_.is_written()[weight.index]) {
        found->second = inside.add_weight(std::move(copied), weight);
      } else {
        operands.push_back(here(value));
        found->second = inside.add_input(std::move(copied));
      }
      return found->second;
    };
    std::vector<bool> is_inside(old_.node_limit(), false);
    for (NodeId node : part) is_inside[node.index] = true;
    std::vector<ValueId> results;  // of the old graph
    for (NodeId id : part) {
      const Node& node = old_[id];
      std::vector<Argument> arguments = node.arguments;
      for (Argument& argument : arguments) {
        if (auto* sizes = argument.get_if<IntList>()) {
          // A size that is computed is known from the result's type; only one of these can be left.
          for (IntItem& size : *sizes) {
            if (std::holds_alternative<ValueId>(size)) size = int64_t{-1};
          }
        }
        for_each_value(argument, [&](ValueId& value, uint32_t) { value = lookup(value); });
      }
      std::vector<NewValue> outputs;
      for (ValueId output : node.outputs) {
        NewValue copied = copy_of(output);
        copied.storage = {};
        std::get<TensorType>(copied.type).strides.clear();
        outputs.push_back(std::move(copied));
      }
      NodeId copied = inside.create(node.op, std::move(arguments), std::move(outputs), node.location);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        inner[node.outputs[i]] = body[copied].outputs[i];
        bool is_needed = std::ranges::any_of(old_[node.outputs[i]].uses, [&](const Use& use) {
          return !use.node.is_valid() || (is_live_[use.node.index] && !is_inside[use.node.index]);
        });
        if (is_needed) results.push_back(node.outputs[i]);
      }
    }
    std::vector<Argument> returned;
    std::vector<NewValue> outputs;
    for (ValueId result : results) {
      returned.emplace_back(inner[result]);
      NewValue copied = copy_of(result);
      copied.storage = {};
      std::get<TensorType>(copied.type).strides.clear();
      outputs.push_back(std::move(copied));
    }
    inside.set_outputs(std::move(returned));
    GraphId id{static_cast<uint32_t>(component_.graphs.size() + bodies_.size())};
    std::vector<Argument> arguments = {std::string(kXnnpackBackend), id, std::move(operands)};
    NodeId node = rewriter_.create(delegate, std::move(arguments), std::move(outputs), old_[part.front()].location);
    for (size_t i = 0; i < results.size(); ++i) ids_[results[i].index] = entry_[node].outputs[i];
    bodies_.push_back(std::move(body));
  }

  Program& program_;
  Component& component_;
  const Graph& old_;
  const Steps& steps_;
  Graph entry_;
  Rewriter rewriter_;
  std::vector<ValueId> ids_;   // by value of the old graph
  std::vector<bool> is_live_;  // by node of the old graph
  std::vector<Graph> bodies_;
};

}  // namespace

Pass delegate_to_xnnpack() {
  return {"delegate-to-xnnpack", [](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            const std::vector<bool> is_written = find_written(program);
            for (Component& component : program.components) {
              Steps steps(program, component, is_written);
              if (steps.count() == 0) continue;
              ARGOSY_TRY_STATUS(Outliner(program, component, steps).run());
              has_changed = true;
            }
            return has_changed;
          }};
}

}  // namespace argosy::executorch
