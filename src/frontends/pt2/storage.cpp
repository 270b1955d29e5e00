#include "frontends/pt2/storage.h"

#include "ir/aliasing.h"

namespace argosy {

void StorageAssigner::assign(const OpSchema& schema, const Graph& graph, std::span<const Argument> arguments,
                             std::vector<NewValue>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!std::holds_alternative<TensorType>(outputs[i].type)) continue;
    OutputAlias alias = alias_of(schema, graph, arguments, outputs[i].type, i);
    if (alias.kind == Aliasing::kFresh) outputs[i].storage = fresh();
    if (alias.kind != Aliasing::kOperand || !alias.operand) continue;
    const ValueId* value = arguments[*alias.operand].get_if<ValueId>();
    if (value != nullptr) outputs[i].storage = graph[*value].storage;
  }
}

}  // namespace argosy
