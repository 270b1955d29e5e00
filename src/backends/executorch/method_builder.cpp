#include "backends/executorch/lowering.h"

namespace argosy::executorch {

Result<Method> build_method(const Program&, const Component&, DataTable&, Diagnostics&) {
  return fail(ErrorCode::kUnsupportedFeature, "methods are not built yet");
}

}  // namespace argosy::executorch
