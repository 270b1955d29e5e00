#pragma once

#include <string>

#include "backends/onnx/options.h"

namespace argosy {

struct OnnxOptions {
  onnx::LoweringOptions lowering;
  onnx::WeightsMode weights = onnx::WeightsMode::kCopy;
  std::string engine = "plain";            // a name of engines/engine.h: what the folder is for
  bool missing_weights_as_inputs = false;  // those whose bytes are not known; else they are an error
};

/// What backends can be asked for; each takes what concerns it.
struct BackendOptions {
  OnnxOptions onnx;
};

}  // namespace argosy
