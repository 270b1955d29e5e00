#pragma once

#include "backends/onnx/document.h"

namespace argosy::onnx {

/// Gives every value, node and graph of a complete model a name of its own. Names of inputs and outputs of the model
/// stay as they are (they must differ), other values keep theirs as far as they are unique; what has none is called by
/// the op that makes it and a number. Nodes are called by where they come from and their op. Same model, same names.
void name_model(Model& model);

}  // namespace argosy::onnx
