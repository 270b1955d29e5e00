#include "passes/fix_dims.h"

#include <algorithm>
#include <map>

#include "passes/substitute_symbols.h"

namespace argosy {
namespace {

/// Values that computed a size which is a number by now.
void erase_unused_numbers(Graph& graph) {
  Rewriter rewriter(graph);
  for (NodeId node = graph.last(); node.is_valid();) {
    NodeId previous = graph.previous(node);
    const std::vector<ValueId>& outputs = graph[node].outputs;
    bool is_unused = !outputs.empty() && std::ranges::all_of(outputs, [&](ValueId output) {
      return graph[output].number() != nullptr && graph[output].uses.empty();
    });
    if (is_unused) rewriter.erase(node);
    node = previous;
  }
}

bool fits(const TensorSource& sample, const TensorType& type) {
  if (sample.shape().size() != type.shape.size()) return false;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    auto size = type.shape[i].is_valid() ? type.shape[i].as_integer() : std::nullopt;
    if (size && *size != sample.shape()[i]) return false;
  }
  return true;
}

/// Samples are of all inputs or of none.
void drop_samples_that_do_not_fit(Component& component) {
  for (const InputSpec& input : component.inputs) {
    if (!input.value.is_valid()) continue;
    auto sample = component.samples.find(input.name);
    const TensorType* type = component.entry()[input.value].tensor();
    if (sample == component.samples.end() || type == nullptr || fits(*sample->second, *type)) continue;
    component.samples.clear();
    return;
  }
}

bool fix(Component& component) {
  std::map<std::string, SymExpr> numbers;
  for (SymExpr symbol : component.symbols->symbols()) {
    if (!symbol.is_integer_valued()) continue;
    SymRange range = component.symbols->range(symbol);
    if (range.min == range.max)
      numbers.emplace(std::string(symbol.symbol_name()), component.symbols->integer(range.min));
  }
  if (numbers.empty() || !substitute_symbols(component, numbers)) return false;
  for (Graph& graph : component.graphs) erase_unused_numbers(graph);
  drop_samples_that_do_not_fit(component);
  return true;
}

}  // namespace

Pass fix_dims() {
  return {"fix-dims", [](Program& program, PassContext&) -> Result<bool> {
            bool has_changed = false;
            for (Component& component : program.components) has_changed = fix(component) || has_changed;
            return has_changed;
          }};
}

}  // namespace argosy
