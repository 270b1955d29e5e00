#include "backends/onnx/lowering.h"

#include <array>
#include <memory>

#include "backends/onnx/translations.h"
#include "passes/compact_ids.h"
#include "passes/decompose_complex.h"
#include "passes/decomposition_families.h"
#include "passes/eliminate_dead_code.h"
#include "passes/fix_dims.h"
#include "passes/functionalise.h"
#include "passes/legalise.h"
#include "passes/normalise.h"
#include "passes/rewrite_rules.h"

namespace argosy::onnx {

Pipeline onnx_pipeline(const LoweringOptions&) {
  Pipeline pipeline;
  // Grouped products of experts are kept: they have a translation.
  std::array families = {attention_decompositions()};
  pipeline.add(apply_rules("decompose-attention", std::make_shared<RuleTable>(families)));
  pipeline.add(fix_dims());
  pipeline.add(functionalise());
  pipeline.add(normalise());
  pipeline.add(decompose_complex());
  pipeline.add(legalise(takes));
  pipeline.add(normalise());
  pipeline.add(eliminate_dead_code());
  pipeline.add(compact_ids());
  return pipeline;
}

}  // namespace argosy::onnx
