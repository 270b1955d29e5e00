#pragma once

#include <span>
#include <string>

#include "backends/onnx/document.h"
#include "base/result.h"

namespace argosy::onnx {

/// A model that puts features of images or sounds at places of a text's embeddings becomes one that does not: it gives
/// what it would give if no place took a feature, and the inputs of features go. Such places are found as selections
/// and scatters that take their other operand where there is no feature; a model that uses features in another way is
/// an error.
Status drop_features(Model& model, std::span<const std::string> inputs);

}  // namespace argosy::onnx
