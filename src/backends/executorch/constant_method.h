#pragma once

#include "backends/executorch/document.h"
#include "backends/executorch/generation/task.h"

namespace argosy::executorch {

/// A method that computes nothing and returns these values.
Method constant_method(const ConstantMethod& constant);

}  // namespace argosy::executorch
