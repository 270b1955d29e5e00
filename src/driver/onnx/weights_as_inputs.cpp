#include "driver/onnx/weights_as_inputs.h"

namespace argosy::onnx {

void make_inputs(Model& model, const std::function<bool(const TensorSource&)>& is_chosen, StoredValue stored) {
  std::vector<Initializer> kept;
  for (Initializer& initializer : model.initializers) {
    bool is_input = is_chosen(*initializer.tensor);
    if (is_input) {
      Value& value = model[initializer.value];
      value.dtype = initializer.tensor->dtype();
      value.shape.emplace();
      for (int64_t size : initializer.tensor->shape()) value.shape->emplace_back(size);
      model.graphs.front().inputs.push_back(initializer.value);
    }
    if (!is_input || stored == StoredValue::kDefault) kept.push_back(std::move(initializer));
  }
  model.initializers = std::move(kept);
}

}  // namespace argosy::onnx
