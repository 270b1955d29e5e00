#include "driver/live_tensors.h"

#include <map>
#include <string_view>

#include "base/text.h"
#include "tensor/source.h"

namespace argosy {

Status attach_live(Program& program, std::span<const LiveTensor> tensors) {
  std::map<std::string_view, const LiveTensor*> by_name;
  for (const LiveTensor& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  for (Weight& weight : program.weights) {
    auto found = by_name.find(weight.name);
    if (found == by_name.end()) continue;
    const LiveTensor& tensor = *found->second;
    bool is_float = kind_of(tensor.dtype) == DTypeKind::kFloat && kind_of(weight.dtype) == DTypeKind::kFloat;
    if ((tensor.dtype != weight.dtype && !is_float) || tensor.shape != weight.shape) {
      return fail(ErrorCode::kInvalidInput,
                  format("{} is {} in the graph and {} in the model", quoted(weight.name),
                         tensor_text(weight.dtype, weight.shape), tensor_text(tensor.dtype, tensor.shape)),
                  "the model was changed while it was exported");
    }
    ARGOSY_TRY(weight.source, borrowed(tensor.bytes, tensor.dtype, tensor.shape, tensor.identity));
    if (tensor.dtype != weight.dtype) {
      ARGOSY_TRY(weight.source, converted(weight.source, weight.dtype));
    }
  }
  return {};
}

}  // namespace argosy
