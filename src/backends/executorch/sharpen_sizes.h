#pragma once

#include "passes/pass.h"

namespace argosy::executorch {

/// "sharpen-sizes": a reshape states the sizes of its result, often more simply than the trace found them: 4, where the
/// type has n // (n // 4). All types of the component then use the simpler form, which keeps bounds tight.
Pass sharpen_sizes();

}  // namespace argosy::executorch
