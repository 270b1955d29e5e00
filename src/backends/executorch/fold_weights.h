#pragma once

#include "passes/pass.h"

namespace argosy::executorch {

/// "fold-weights": nodes that only rearrange a weight (reshape, permute, slice, cast, …) become a new weight, whose
/// recipe does that while it is written. A large weight that is also used as it is, or that the program writes,
/// stays.
Pass fold_weights();

}  // namespace argosy::executorch
