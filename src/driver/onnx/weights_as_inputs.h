#pragma once

#include <cstdint>
#include <functional>

#include "backends/onnx/document.h"

namespace argosy::onnx {

enum class StoredValue : uint8_t {
  kDropped,  // callers must pass the input
  kDefault,  // callers may pass it: else the stored value is used
};

/// Makes the initializers that are chosen inputs of the model, after those that it has.
void make_inputs(Model& model, const std::function<bool(const TensorSource&)>& is_chosen, StoredValue stored);

}  // namespace argosy::onnx
