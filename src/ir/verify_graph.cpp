#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "ir/text_syntax.h"
#include "ir/verify_parts.h"

namespace argosy {
namespace {

int depth_of(const Argument& argument) {
  const auto* list = argument.get_if<ArgumentList>();
  if (list == nullptr) return 0;
  int depth = 0;
  for (const Argument& item : list->items) depth = std::max(depth, depth_of(item));
  return depth + 1;
}

bool has_nested_graph(const Argument& argument) {
  const auto* list = argument.get_if<ArgumentList>();
  if (list == nullptr) return false;
  return std::ranges::any_of(list->items,
                             [](const Argument& item) { return item.is<GraphId>() || has_nested_graph(item); });
}

/// Walks one graph in order, keeping track of what is defined so far and of every use it meets.
class StructureVerifier {
 public:
  StructureVerifier(const Program& program, const Component& component, const Graph& graph, Findings& findings)
      : program_(program),
        component_(component),
        graph_(graph),
        findings_(findings),
        is_defined_(graph.value_limit()),
        uses_(graph.value_limit()) {}

  bool run() {
    size_t before = findings_.count();
    for (ValueId id : graph_.inputs()) define(id, NodeId{}, false);
    for (ValueId id : graph_.weights()) define(id, NodeId{}, true);
    check_nodes();
    for (uint32_t i = 0; i < graph_.outputs().size(); ++i) check_values(NodeId{}, i, graph_.outputs()[i]);
    // Use lists say nothing if the walk itself went wrong.
    if (findings_.count() == before) check_uses();
    return findings_.count() == before && !findings_.is_full();
  }

 private:
  void check_nodes() {
    size_t count = 0;
    NodeId previous;
    for (NodeId id = graph_.first(); id.is_valid(); previous = id, id = graph_.next(id)) {
      if (findings_.is_full()) return;
      if (!graph_.is_live(id) || ++count > graph_.node_count()) {
        return findings_.add("the list of nodes is broken");
      }
      if (graph_.previous(id) != previous || (previous.is_valid() && !graph_.comes_before(previous, id))) {
        return findings_.add("the order of nodes is broken");
      }
      const Node& node = graph_[id];
      if (node.op.index >= program_.schemas.size()) {
        findings_.add(format("node {} has no op", id.index));
        return;
      }
      if (node.location.is_valid() && node.location.index >= program_.locations.size()) {
        findings_.add(
            format("node {} of op {} has a location that does not exist", id.index, program_.schemas[node.op].name));
        return;
      }
      for (uint32_t i = 0; i < node.arguments.size(); ++i) check_values(id, i, node.arguments[i]);
      for (ValueId output : node.outputs) define(output, id, false);
    }
    if (count != graph_.node_count() || graph_.last() != previous) findings_.add("the list of nodes is broken");
  }

  // Whether a definition is sound: where it is, what its type says.
  void define(ValueId id, NodeId producer, bool is_weight) {
    if (!graph_.is_live(id) || is_defined_[id.index]) {
      return findings_.add(graph_.is_live(id) ? format("%{} is defined twice", graph_[id].name)
                                              : format("value {} is defined but does not exist", id.index));
    }
    is_defined_[id.index] = true;
    ++defined_count_;
    const Value& value = graph_[id];
    if (value.name.empty() || graph_.find(value.name) != id) {
      findings_.add(format("value {} is not found by its name {}", id.index, quoted(value.name)));
    }
    if (value.producer != producer || value.weight.is_valid() != is_weight) {
      findings_.add(format("%{} does not know what defines it", value.name));
    }
    check_type(value);
    if (is_weight) check_weight(value);
  }

  void check_type(const Value& value) {
    const TensorType* tensor = value.tensor();
    if (tensor == nullptr) return;
    if (!tensor->strides.empty() && tensor->strides.size() != tensor->shape.size()) {
      findings_.add(
          format("%{} has {} dims, but {} strides", value.name, tensor->shape.size(), tensor->strides.size()));
    }
    for (const auto* sizes : {&tensor->shape, &tensor->strides}) {
      std::string_view what = sizes == &tensor->shape ? "dim" : "stride";
      for (size_t i = 0; i < sizes->size(); ++i) {
        if (!(*sizes)[i].is_valid()) {
          findings_.add(format("{} {} of %{} is not known", what, i, value.name));
        } else if ((*sizes)[i].as_integer().value_or(0) < 0) {
          findings_.add(format("{} {} of %{} is negative", what, i, value.name));
        }
      }
    }
  }

  void check_weight(const Value& value) {
    if (value.weight.index >= program_.weights.size()) {
      return findings_.add(format("%{} is bound to a weight that does not exist", value.name));
    }
    const Weight& weight = program_[value.weight];
    const TensorType* tensor = value.tensor();
    bool fits = tensor != nullptr && tensor->dtype == weight.dtype && tensor->shape.size() == weight.shape.size();
    for (size_t i = 0; fits && i < weight.shape.size(); ++i) {
      fits = !tensor->shape[i].is_valid() || tensor->shape[i].as_integer() == weight.shape[i];
    }
    if (!fits) {
      std::string type;
      append_type(type, *component_.symbols, value.type);
      findings_.add(format("%{} is {}, but weight {} is {}[{}]", value.name, type, quoted(weight.name),
                           to_text(weight.dtype), join_dims(weight.shape)));
    }
  }

  static std::string join_dims(const std::vector<int64_t>& shape) {
    std::string text;
    for (int64_t dim : shape) text += (text.empty() ? "" : ", ") + std::to_string(dim);
    return text;
  }

  // Values that an argument (of a node, or of the graph's outputs) uses, and graphs that it names.
  void check_values(NodeId node, uint32_t index, const Argument& argument) {
    auto report = [&](std::string what) {
      std::string where = format("argument {}", index);
      if (!node.is_valid()) return findings_.add(format("result {} of the graph {}", index, what));
      const OpSchema& schema = program_.schemas[graph_[node].op];
      if (index < schema.arguments.size()) where = "argument " + schema.arguments[index].name;
      findings_.add(format("{} of {} {}", where, schema.name, what));
    };
    if (depth_of(argument) > kMaxListDepth) return report("has lists nested too deeply");
    if (const auto* id = argument.get_if<ValueId>(); id != nullptr && !id->is_valid()) {
      return report("names no value");
    }
    if (const auto* id = argument.get_if<GraphId>()) {
      if (!node.is_valid()) return report("is a graph");
      if (id->index >= component_.graphs.size()) {
        return report(format("names graph {}, which does not exist", id->index));
      }
    }
    if (has_nested_graph(argument)) return report("has a graph inside a list");
    for_each_value(argument, [&](ValueId id, uint32_t item) {
      if (!graph_.is_live(id)) return report(format("uses value {}, which does not exist", id.index));
      if (!is_defined_[id.index]) return report(format("uses %{} before it is defined", graph_[id].name));
      uses_[id.index].push_back({node, index, item});
    });
  }

  void check_uses() {
    for (uint32_t i = 0; i < uses_.size() && !findings_.is_full(); ++i) {
      ValueId id{i};
      if (graph_.is_live(id) != is_defined_[i]) {
        findings_.add(format("%{} is not defined by any node or input", graph_[id].name));
        continue;
      }
      if (!is_defined_[i] || uses_[i] == graph_[id].uses) continue;
      // A value knows its uses in order of creation, which need not be that of the graph.
      auto by_place = [](const Use& a, const Use& b) {
        return std::tie(a.node, a.argument, a.item) < std::tie(b.node, b.argument, b.item);
      };
      std::vector<Use> known = graph_[id].uses;
      std::ranges::sort(known, by_place);
      std::ranges::sort(uses_[i], by_place);
      if (known != uses_[i]) findings_.add(format("the use list of %{} is broken", graph_[id].name));
    }
    if (defined_count_ != graph_.value_count()) findings_.add("the number of values is broken");
  }

  const Program& program_;
  const Component& component_;
  const Graph& graph_;
  Findings& findings_;
  std::vector<bool> is_defined_;
  size_t defined_count_ = 0;
  std::vector<std::vector<Use>> uses_;  // by index of the value
};

}  // namespace

bool verify_structure(const Program& program, const Component& component, const Graph& graph, Findings& findings) {
  return StructureVerifier(program, component, graph, findings).run();
}

}  // namespace argosy
