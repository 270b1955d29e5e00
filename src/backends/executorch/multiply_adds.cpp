#include "backends/executorch/multiply_adds.h"

#include <limits>
#include <string_view>

namespace argosy::executorch {
namespace {

class Counter {
 public:
  Counter(const Program& program, const Component& component) : program_(program), component_(component) {}

  double graph(const Graph& graph) const {
    double sum = 0;
    for (NodeId node : graph.nodes()) sum += this->node(graph, node);
    return sum;
  }

 private:
  double size(SymExpr size) const {
    if (!size.is_valid()) return 0;
    int64_t most = component_.symbols->range(size).max;
    return most == SymRange::kNoMax ? 0 : static_cast<double>(most);
  }

  double elements(const TensorType& type) const {
    double count = 1;
    for (SymExpr dim : type.shape) count *= size(dim);
    return count;
  }

  const TensorType* tensor(const Graph& graph, const Node& node, std::string_view argument) const {
    std::optional<uint32_t> index = program_.schemas[node.op].find_argument(argument);
    if (!index || *index >= node.arguments.size()) return nullptr;
    const auto* value = node.arguments[*index].get_if<ValueId>();
    return value == nullptr ? nullptr : graph[*value].tensor();
  }

  double node(const Graph& graph, NodeId id) const {
    const Node& node = graph[id];
    std::string_view op = program_.schemas[node.op].name;
    double called = 0;
    for (const Argument& argument : node.arguments) {
      if (const auto* body = argument.get_if<GraphId>()) called += this->graph(component_.graphs[body->index]);
    }
    if (called > 0 || node.outputs.empty()) return called;
    const TensorType* result = graph[node.outputs[0]].tensor();
    if (result == nullptr) return 0;
    auto from_last = [&](std::string_view argument, size_t back) {
      const TensorType* type = tensor(graph, node, argument);
      return type == nullptr || type->shape.size() < back ? 0.0 : size(type->shape[type->shape.size() - back]);
    };
    if (op == "aten.linear.default" || op == "argosy.quantized_linear.default" ||
        op == "argosy.static_linear.default") {
      return elements(*result) * from_last("input", 1);
    }
    if (op == "aten.matmul.default" || op == "aten.bmm.default" || op == "aten.mm.default") {
      return elements(*result) * from_last("self", 1);
    }
    if (op == "aten.addmm.default") return elements(*result) * from_last("mat1", 1);
    if (op == "aten.baddbmm.default") return elements(*result) * from_last("batch1", 1);
    if (op.find("scaled_dot_product_attention") != op.npos) {
      const TensorType* query = tensor(graph, node, "query");
      return query == nullptr ? 0 : 2 * elements(*query) * from_last("key", 2);
    }
    if (op.starts_with("llama.custom_sdpa") || op.starts_with("llama.sdpa")) {
      const TensorType* query = tensor(graph, node, "query");
      return query == nullptr ? 0 : 2 * elements(*query) * from_last("key", 3);
    }
    if (op.starts_with("aten.conv") || op == "argosy.static_convolution.default") {
      // Each weight is used once for every place of the result (of a transposed one: of the input).
      const TensorType* weight = tensor(graph, node, "weight");
      const TensorType* places = op.find("transpose") != op.npos ? tensor(graph, node, "input") : result;
      if (weight == nullptr || places == nullptr || places->shape.size() < 3) return 0;
      double channels = size(places->shape[1]);
      return channels == 0 ? 0 : elements(*weight) * elements(*places) / channels;
    }
    return 0;
  }

  const Program& program_;
  const Component& component_;
};

}  // namespace

uint64_t multiply_adds(const Program& program, const Component& component, const Graph& graph) {
  double count = Counter(program, component).graph(graph);
  constexpr double kMost = 9e18;
  return static_cast<uint64_t>(count < kMost ? count : kMost);
}

}  // namespace argosy::executorch
