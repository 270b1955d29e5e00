#include "backends/onnx/made_weight.h"

#include <string>

#include "passes/added_weights.h"

namespace argosy::onnx {

bool can_be_replaced(const Program& program, const AtenBuilder& f, ValueId value) {
  const argosy::Value& found = f.graph()[value];
  return found.weight.is_valid() && found.uses.size() == 1 && !program[found.weight].tied_to.is_valid();
}

ValueId add_made_weight(Program& program, Rewriter& rewriter, const AtenBuilder& f, ValueId like, std::string_view what,
                        TensorSourcePtr source) {
  const std::string name(what);
  WeightId id = add_weight(program, program[f.graph()[like].weight].name + "/" + name, std::move(source));
  argosy::Sizes sizes;
  for (int64_t size : program[id].shape) sizes.push_back(f.integer(size));
  NewValue added{f.graph()[like].name + "_" + name, TensorType{program[id].dtype, std::move(sizes), {}}};
  return rewriter.add_weight(std::move(added), id);
}

}  // namespace argosy::onnx
