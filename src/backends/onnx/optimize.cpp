#include "backends/onnx/lowering.h"

namespace argosy::onnx {

Status optimize(Model&) { return {}; }

}  // namespace argosy::onnx
