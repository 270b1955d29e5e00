#include "passes/substitute_symbols.h"

namespace argosy {

void replace_number(Rewriter& rewriter, ValueId old_value, int64_t number) {
  const std::vector<Use> uses = rewriter.graph()[old_value].uses;
  for (const Use& use : uses) {
    if (!use.node.is_valid()) {
      rewriter.set_output(use.argument, number);
      continue;
    }
    Argument argument = rewriter.graph()[use.node].arguments[use.argument];
    if (argument.is<ValueId>()) {
      rewriter.set_argument(use.node, use.argument, number);
    } else if (auto* list = argument.get_if<IntList>()) {
      for (IntItem& item : *list) {
        if (item == IntItem(old_value)) item = number;
      }
      rewriter.set_argument(use.node, use.argument, std::move(argument));
    }
  }
}

bool substitute_symbols(Component& component, const std::map<std::string, SymExpr>& replacements) {
  SymContext& symbols = *component.symbols;
  auto replaced = [&](SymExpr expression) {
    if (!expression.is_valid()) return expression;
    return symbols.substitute(expression, [&](SymExpr symbol) -> std::optional<SymExpr> {
      auto found = replacements.find(std::string(symbol.symbol_name()));
      return found == replacements.end() ? std::nullopt : std::optional(found->second);
    });
  };
  bool has_changed = false;
  for (Graph& graph : component.graphs) {
    Rewriter rewriter(graph);
    std::vector<std::pair<ValueId, int64_t>> known;
    for (uint32_t i = 0; i < graph.value_limit(); ++i) {
      ValueId id{i};
      if (!graph.is_live(id)) continue;
      if (const TensorType* tensor = graph[id].tensor()) {
        TensorType type = *tensor;
        for (SymExpr& size : type.shape) size = replaced(size);
        for (SymExpr& stride : type.strides) stride = replaced(stride);
        if (type != *tensor) rewriter.set_type(id, std::move(type));
        continue;
      }
      SymType type = *graph[id].number();
      type.expression = replaced(type.expression);
      if (type.kind == SymType::Kind::kInt && type.expression.is_valid()) {
        if (auto number = type.expression.as_integer()) known.emplace_back(id, *number);
      }
      if (type != *graph[id].number()) rewriter.set_type(id, type);
    }
    for (auto [id, number] : known) replace_number(rewriter, id, number);
    has_changed = has_changed || rewriter.has_changed();
  }
  for (Guard& guard : component.guards) guard.condition = replaced(guard.condition);
  return has_changed;
}

}  // namespace argosy
