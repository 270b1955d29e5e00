#include "backends/executorch/encode.h"

namespace argosy::executorch {

Result<std::string> encode_program(const Document&, const SegmentTable&, bool) {
  return fail(ErrorCode::kUnsupportedFeature, "programs for ExecuTorch are not encoded yet");
}

}  // namespace argosy::executorch
