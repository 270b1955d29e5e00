#include "backends/executorch/xnnpack/delegate.h"

namespace argosy::executorch {

Result<Delegate> build_xnnpack_delegate(const Program&, const Component&, const Graph&, DataTable&) {
  return fail(ErrorCode::kUnsupportedFeature, "payloads for XNNPACK are not written yet");
}

}  // namespace argosy::executorch
