#pragma once

#include "backends/onnx/options.h"
#include "base/result.h"
#include "options.h"

namespace argosy::cli {

/// Finds the scheme that --quantize names and that is not one of ours: an extension has registered it
/// (docs/how-to/extend.md). It is run by a Python process that lives as long as `how.own` does. Does nothing if none is
/// named.
Status find_weight_scheme(onnx::Quantization& how, const Environment& environment);

}  // namespace argosy::cli
