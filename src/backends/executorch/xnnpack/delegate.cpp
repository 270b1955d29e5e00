#include "backends/executorch/xnnpack/delegate.h"

namespace argosy::executorch {

Pass delegate_to_xnnpack() {
  return {"delegate-to-xnnpack", [](Program&, PassContext&) -> Result<bool> { return false; }};
}

}  // namespace argosy::executorch
