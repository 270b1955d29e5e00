#pragma once

#include <string_view>

#include "backends/onnx/translations.h"

namespace argosy::onnx {

/// The row of an op that is to be a node of a user's own domain (io/onnx/own_op.h): tensors among its arguments are the
/// inputs, in order, all others attributes by their names. Null: the user wants none for this op.
const Translation* own_translation(const Program& program, std::string_view op);

}  // namespace argosy::onnx
