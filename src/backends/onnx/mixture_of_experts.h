#pragma once

#include "passes/pass.h"

namespace argosy::onnx {

/// "use-mixture-of-experts": rows that are sorted by their expert, multiplied, activated, multiplied again and added up
/// by token become one op, com.microsoft.MoE. Its weights are new ones, with gates and factors in turn. For float32
/// alone, which is what the op's kernel takes. Runs after normalise.
Pass use_mixture_of_experts();

}  // namespace argosy::onnx
