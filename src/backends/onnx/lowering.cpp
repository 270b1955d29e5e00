#include "backends/onnx/lowering.h"

#include "backends/onnx/translations.h"
#include "passes/compact_ids.h"
#include "passes/decompose_complex.h"
#include "passes/eliminate_dead_code.h"
#include "passes/fix_dims.h"
#include "passes/functionalise.h"
#include "passes/legalise.h"
#include "passes/normalise.h"

namespace argosy::onnx {
namespace {

Pass legalise_for_onnx() { return legalise("onnx", takes); }

constexpr NamedPass kPasses[] = {
    {"legalise-for-onnx", "write what ONNX lacks in other ops; after normalise", legalise_for_onnx},
};

}  // namespace

std::span<const NamedPass> lowering_passes() { return kPasses; }

Pipeline onnx_pipeline(const LoweringOptions&, std::optional<Pass> bind) {
  Pipeline pipeline;
  pipeline.add(fix_dims());
  pipeline.add(functionalise());
  pipeline.add(normalise());
  if (bind) {
    pipeline.add(eliminate_dead_code());  // so that inputs that nothing needs are not read
    pipeline.add(*std::move(bind));
  }
  pipeline.add(decompose_complex());
  pipeline.add(legalise_for_onnx());
  pipeline.add(normalise());
  pipeline.add(eliminate_dead_code());
  pipeline.add(compact_ids());
  return pipeline;
}

}  // namespace argosy::onnx
