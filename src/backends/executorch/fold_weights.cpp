#include "backends/executorch/fold_weights.h"

#include <set>

#include "base/text.h"
#include "ir/rewriter.h"

namespace argosy::executorch {
namespace {

// A weight up to this size may be there in two arrangements.
constexpr int64_t kSmallBytes = 64 << 10;

std::optional<std::vector<int64_t>> static_shape(const TensorType& type) {
  std::vector<int64_t> shape;
  for (SymExpr size : type.shape) {
    std::optional<int64_t> number = size.is_valid() ? size.as_integer() : std::nullopt;
    if (!number) return std::nullopt;
    shape.push_back(*number);
  }
  return shape;
}

/// The weights that something writes, by name.
std::set<std::string> written_weights(const Program& program) {
  std::set<std::string> written;
  for (const Component& component : program.components) {
    for (const OutputSpec& output : component.outputs) written.insert(output.target);
    for (const Graph& graph : component.graphs) {
      for (NodeId id : graph.nodes()) {
        const OpSchema& schema = program.schemas[graph[id].op];
        for (size_t i = 0; i < schema.arguments.size(); ++i) {
          const ValueId* value = graph[id].arguments[i].get_if<ValueId>();
          if (schema.arguments[i].is_written && value != nullptr && graph[*value].weight.is_valid())
            written.insert(program[graph[*value].weight].name);
        }
      }
    }
  }
  return written;
}

class Folder {
 public:
  Folder(Program& program, Graph& graph, const std::set<std::string>& written)
      : program_(program), graph_(graph), rewriter_(graph), written_(written) {}

  Result<bool> run() {
    for (NodeId id : graph_.nodes()) ARGOSY_TRY_STATUS(fold(id));
    return rewriter_.has_changed();
  }

 private:
  Status fold(NodeId id) {
    const Node& node = graph_[id];
    if (node.outputs.size() != 1 || node.arguments.empty()) return {};
    const ValueId* self = node.arguments[0].get_if<ValueId>();
    const TensorType* type = graph_[node.outputs[0]].tensor();
    if (self == nullptr || type == nullptr || !graph_[*self].weight.is_valid()) return {};
    const Weight& weight = program_[graph_[*self].weight];
    if (written_.contains(weight.name)) return {};
    if (graph_[*self].uses.size() > 1 && weight.source->bytes() > kSmallBytes) return {};
    std::optional<std::vector<int64_t>> shape = static_shape(*type);
    if (!shape) return {};
    ARGOSY_TRY(TensorSourcePtr source, arranged(node, weight.source, *shape));
    if (source == nullptr || source->dtype() != type->dtype || !std::ranges::equal(source->shape(), *shape)) return {};
    Weight folded{format("{}/{}", weight.name, graph_[node.outputs[0]].name),
                  WeightKind::kConstant,
                  type->dtype,
                  *shape,
                  std::move(source),
                  {}};
    NewValue value{graph_[node.outputs[0]].name, *type};
    program_.weights.push_back(std::move(folded));
    ValueId replacement =
        rewriter_.add_weight(std::move(value), WeightId{static_cast<uint32_t>(program_.weights.size() - 1)});
    rewriter_.replace(id, std::vector<ValueId>{replacement});
    return {};
  }

  /// Null: the node does something else.
  Result<TensorSourcePtr> arranged(const Node& node, const TensorSourcePtr& source, const std::vector<int64_t>& shape) {
    std::string_view op = program_.schemas[node.op].name;
    if (op == "aten.reshape.default" || op == "aten.unsqueeze.default" || op == "aten.squeeze.dims")
      return reshaped(source, shape);
    if (op == "aten.permute.default") {
      std::vector<int> dims;
      for (const IntItem& item : std::get<IntList>(node.arguments[1].variant()))
        dims.push_back(static_cast<int>(std::get<int64_t>(item)));
      return transposed(source, std::move(dims));
    }
    if (op == "aten.slice.Tensor") return slice(node, source, shape);
    return TensorSourcePtr();
  }

  /// slice.Tensor(self, dim, start, end, step): of numbers, in steps of one.
  static Result<TensorSourcePtr> slice(const Node& node, const TensorSourcePtr& source,
                                       const std::vector<int64_t>& shape) {
    const int64_t *dim = node.arguments[1].get_if<int64_t>(), *step = node.arguments[4].get_if<int64_t>();
    int64_t start = 0;
    if (const int64_t* given = node.arguments[2].get_if<int64_t>()) {
      start = *given;
    } else if (!node.arguments[2].is<None>()) {
      return TensorSourcePtr();
    }
    if (dim == nullptr || step == nullptr || *step != 1) return TensorSourcePtr();
    size_t index = static_cast<size_t>(*dim < 0 ? *dim + static_cast<int64_t>(shape.size()) : *dim);
    if (index >= shape.size()) return TensorSourcePtr();
    if (start < 0) start += source->shape()[index];
    if (start < 0 || start + shape[index] > source->shape()[index]) return TensorSourcePtr();
    return sliced(source, static_cast<int>(index), start, shape[index]);
  }

  Program& program_;
  Graph& graph_;
  Rewriter rewriter_;
  const std::set<std::string>& written_;
};

}  // namespace

Pass fold_weights() {
  return {"fold-weights", [](Program& program, PassContext&) -> Result<bool> {
            std::set<std::string> written = written_weights(program);
            bool has_changed = false;
            for (Component& component : program.components) {
              for (Graph& graph : component.graphs) {
                ARGOSY_TRY(bool changed, Folder(program, graph, written).run());
                has_changed = has_changed || changed;
              }
            }
            return has_changed;
          }};
}

}  // namespace argosy::executorch
