#include "passes/added_weights.h"

#include <utility>

#include "ir/rewriter.h"

namespace argosy {

WeightId add_weight(Program& program, std::string name, TensorSourcePtr source) {
  std::span<const int64_t> shape = source->shape();
  DType dtype = source->dtype();
  program.weights.push_back({.name = std::move(name),
                             .kind = WeightKind::kConstant,
                             .dtype = dtype,
                             .shape = {shape.begin(), shape.end()},
                             .source = std::move(source)});
  return WeightId{static_cast<uint32_t>(program.weights.size() - 1)};
}

ValueId AddedWeights::value(const RuleContext& context, WeightId id) {
  auto [found, is_new] = values_.try_emplace(id);
  if (is_new) {
    const Weight& weight = context.program[id];
    TensorType type{weight.dtype, {}, {}};
    for (int64_t size : weight.shape) type.shape.push_back(context.component.symbols->integer(size));
    found->second = context.rewriter.add_weight({.name = weight.name, .type = std::move(type)}, id);
  }
  return found->second;
}

}  // namespace argosy
