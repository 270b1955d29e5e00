#pragma once

#include "base/result.h"
#include "tensor/source.h"

namespace argosy::onnx {

/// Whether a tensor of f32 keeps what it says as f16: no value is too large, and if the largest is not 0, it has all
/// digits that f16 has. Small values beside large ones may lose theirs, as they do in sums. Reads the tensor, unless it
/// was f16 before.
Result<bool> fits_half(const TensorSourcePtr& tensor);

}  // namespace argosy::onnx
