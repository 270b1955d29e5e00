#include "backends/onnx/made_weight.h"

#include <string>

namespace argosy::onnx {

bool can_be_replaced(const Program& program, const AtenBuilder& f, ValueId value) {
  const argosy::Value& found = f.graph()[value];
  return found.weight.is_valid() && found.uses.size() == 1 && !program[found.weight].tied_to.is_valid();
}

ValueId add_made_weight(Program& program, Rewriter& rewriter, const AtenBuilder& f, ValueId like, std::string_view what,
                        TensorSourcePtr source, const std::vector<int64_t>& shape) {
  const Weight& old = program[f.graph()[like].weight];
  const std::string name(what);
  Weight made{old.name + "/" + name, WeightKind::kConstant, old.dtype, shape, std::move(source), {}};
  argosy::Sizes sizes;
  for (int64_t size : shape) sizes.push_back(f.integer(size));
  NewValue added{f.graph()[like].name + "_" + name, TensorType{made.dtype, std::move(sizes), {}}};
  program.weights.push_back(std::move(made));
  return rewriter.add_weight(std::move(added), WeightId{static_cast<uint32_t>(program.weights.size() - 1)});
}

}  // namespace argosy::onnx
