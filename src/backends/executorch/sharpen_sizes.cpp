#include "backends/executorch/sharpen_sizes.h"

#include <map>

#include "ir/rewriter.h"

namespace argosy::executorch {
namespace {

struct Equality {
  SymExpr from, to;
};

SymExpr replaced(SymContext& symbols, SymExpr in, const Equality& by) {
  if (!in.is_valid() || in == by.from) return in.is_valid() ? by.to : in;
  std::vector<SymExpr> operands;
  bool has_changed = false;
  for (SymExpr operand : in.operands()) {
    operands.push_back(replaced(symbols, operand, by));
    has_changed |= operands.back() != operand;
  }
  if (!has_changed) return in;
  switch (in.kind()) {
    case SymKind::kAdd: return symbols.add(operands);
    case SymKind::kMul: return symbols.mul(operands);
    case SymKind::kFloorDiv: return symbols.floor_div(operands[0], operands[1]);
    case SymKind::kMod: return symbols.mod(operands[0], operands[1]);
    case SymKind::kPow: return symbols.pow(operands[0], operands[1]);
    case SymKind::kMin:
    case SymKind::kMax: {
      SymExpr result = operands[0];
      for (size_t i = 1; i < operands.size(); ++i) {
        result = in.kind() == SymKind::kMin ? symbols.min(result, operands[i]) : symbols.max(result, operands[i]);
      }
      return result;
    }
    default: return in;
  }
}

size_t size_of(SymExpr expression) {
  size_t count = 1;
  for (SymExpr operand : expression.operands()) count += size_of(operand);
  return count;
}

/// A size of a reshape's result, if the argument has a shorter expression for it than the type.
std::optional<Equality> find_equality(const Component& component, const Graph& graph, const Node& node) {
  const TensorType* type = graph[node.outputs[0]].tensor();
  const auto* given = node.arguments[1].get_if<IntList>();
  if (type == nullptr || given == nullptr || given->size() != type->shape.size()) return std::nullopt;
  for (size_t i = 0; i < given->size(); ++i) {
    SymExpr own = type->shape[i], said;
    if (!own.is_valid() || own.as_integer()) continue;
    if (const int64_t* number = std::get_if<int64_t>(&(*given)[i])) {
      if (*number < 0) continue;
      said = component.symbols->integer(*number);
    } else if (const SymType* computed = graph[std::get<ValueId>((*given)[i])].number()) {
      said = computed->expression;
    }
    if (said.is_valid() && said != own && size_of(said) < size_of(own)) return Equality{own, said};
  }
  return std::nullopt;
}

void replace_everywhere(Component& component, const Equality& by) {
  SymContext& symbols = *component.symbols;
  for (Graph& graph : component.graphs) {
    Rewriter rewriter(graph);
    for (uint32_t i = 0; i < graph.value_limit(); ++i) {
      ValueId id{i};
      if (!graph.is_live(id)) continue;
      if (const TensorType* type = graph[id].tensor()) {
        TensorType changed = *type;
        for (SymExpr& size : changed.shape) size = replaced(symbols, size, by);
        for (SymExpr& stride : changed.strides) stride = replaced(symbols, stride, by);
        if (changed != *type) rewriter.set_type(id, changed);
      } else if (const SymType* number = graph[id].number(); number != nullptr && number->expression.is_valid()) {
        SymType changed{number->kind, replaced(symbols, number->expression, by)};
        if (changed != *number) rewriter.set_type(id, changed);
      }
    }
  }
}

bool sharpen(const Program& program, Component& component) {
  constexpr int kMost = 64;  // each makes types shorter; a model has a handful
  for (int count = 0; count < kMost; ++count) {
    std::optional<Equality> found;
    for (const Graph& graph : component.graphs) {
      for (NodeId id : graph.nodes()) {
        const Node& node = graph[id];
        if (program.schemas[node.op].name == "aten.reshape.default") found = find_equality(component, graph, node);
        if (found) break;
      }
      if (found) break;
    }
    if (!found) return count > 0;
    replace_everywhere(component, *found);
  }
  return true;
}

}  // namespace

Pass sharpen_sizes() {
  return {"sharpen-sizes", [](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            for (Component& component : program.components) has_changed |= sharpen(program, component);
            return has_changed;
          }};
}

}  // namespace argosy::executorch
