#pragma once

#include "backends/onnx/document.h"

namespace argosy::onnx {

/// Gives every value, node and graph of a complete model a unique name. Inputs and outputs of the model keep theirs
/// (they must differ), other values keep theirs as far as they are unique; values without a name are named after the op
/// that makes them and a number. Nodes are named after their origin and their op. Same model, same names.
void name_model(Model& model);

}  // namespace argosy::onnx
