#pragma once

#include "passes/pass.h"

namespace argosy::executorch {

/// "sharpen-sizes": a reshape says what sizes its result has, often in simpler words than the trace found: 4, where the
/// type has n // (n // 4). All types of the component then say it so, and bounds are no wider than they must be.
Pass sharpen_sizes();

}  // namespace argosy::executorch
