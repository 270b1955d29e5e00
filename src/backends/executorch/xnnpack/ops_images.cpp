#include "backends/executorch/xnnpack/builder.h"

namespace argosy::executorch {

std::span<const XnnpackOp> xnnpack_images() { return {}; }

}  // namespace argosy::executorch
