#pragma once

#include "frontends/pt2/json_field.h"
#include "ir/program.h"

namespace argosy {

/// "onnx_ops" of a capture (docs/capture-format.md): what ops of the user's own are in ONNX files, as attributes of the
/// program (io/onnx/own_op.h). `root` may have none.
Status read_own_ops(const JsonField& root, Program& program);

}  // namespace argosy
