#include "backends/onnx/lowering.h"

#include "passes/compact_ids.h"
#include "passes/decompose_custom_ops.h"
#include "passes/eliminate_dead_code.h"

namespace argosy::onnx {

Pipeline onnx_pipeline(const LoweringOptions&) {
  Pipeline pipeline;
  pipeline.add(decompose_custom_ops());
  pipeline.add(eliminate_dead_code());
  pipeline.add(compact_ids());
  return pipeline;
}

}  // namespace argosy::onnx
