#pragma once

#include "passes/pass.h"

namespace argosy::executorch {

/// "fold-weights": what only arranges a weight anew (reshape, permute, slice, cast, …) becomes a weight of its own,
/// whose recipe does it while it is written. A large weight that is used as it is too, or that the program writes,
/// stays.
Pass fold_weights();

}  // namespace argosy::executorch
