#include "backends/executorch/lowering.h"

#include <array>
#include <memory>

#include "backends/executorch/bounds.h"
#include "backends/executorch/fold_weights.h"
#include "backends/executorch/generation/specialise.h"
#include "backends/executorch/kernels.h"
#include "backends/executorch/quantize.h"
#include "backends/executorch/rules.h"
#include "backends/executorch/sharpen_sizes.h"
#include "backends/executorch/xnnpack/delegate.h"
#include "passes/compact_ids.h"
#include "passes/decompose_complex.h"
#include "passes/decomposition_families.h"
#include "passes/eliminate_dead_code.h"
#include "passes/functionalise.h"
#include "passes/legalise.h"
#include "passes/merge_equal_nodes.h"
#include "passes/normalise.h"
#include "passes/rewrite_rules.h"

namespace argosy::executorch {
namespace {

void add_rules(Pipeline& pipeline, std::string name, std::span<const RewriteRule> rules) {
  std::array families = {rules};
  pipeline.add(apply_rules(std::move(name), std::make_shared<RuleTable>(families)));
}

Pass bound_dims(const LoweringOptions& options) {
  return {"bound-dims", [largest = options.largest](Program& program, PassContext&) -> Result<bool> {
            for (const Component& component : program.components) {
              ARGOSY_TRY_STATUS(set_bounds(component, largest));
              bound_selections(program, component);
            }
            return false;
          }};
}

/// A dim that has one size is a number everywhere.
Pass fix_dims(const LoweringOptions& options) {
  return {"fix-dims", [fixed = options.fixed](Program& program, PassContext&) -> Result<bool> {
            for (Component& component : program.components) {
              std::map<std::string, SymExpr> numbers;
              for (const auto& [symbol, name] : component.dim_names) {
                auto found = fixed.find(name);
                if (found != fixed.end()) numbers.emplace(symbol, component.symbols->integer(found->second));
              }
              if (!numbers.empty()) specialise(component, numbers);
            }
            return true;
          }};
}

}  // namespace

Pipeline executorch_pipeline(const LoweringOptions& options) {
  Pipeline pipeline;
  add_rules(pipeline, "decompose-attention", attention_decompositions());
  pipeline.add(functionalise());
  pipeline.add(normalise());
  pipeline.add(decompose_complex());
  pipeline.add(eliminate_dead_code());
  if (options.task) {
    pipeline.add(bind_task(*options.task));
    pipeline.add(eliminate_dead_code());
  }
  if (!options.fixed.empty()) {
    pipeline.add(fix_dims(options));
    pipeline.add(eliminate_dead_code());
  }
  pipeline.add(sharpen_sizes());
  pipeline.add(bound_dims(options));
  pipeline.add(fold_weights());
  pipeline.add(quantize_weights(options));
  pipeline.add(legalise(takes));
  pipeline.add(merge_equal_nodes());
  if (options.recipe == Recipe::kXnnpack) {
    add_rules(pipeline, "prepare-for-xnnpack", xnnpack_rules());
    pipeline.add(merge_equal_nodes());
    pipeline.add(eliminate_dead_code());
    pipeline.add(delegate_to_xnnpack());
  }
  add_rules(pipeline, "select-kernels", kernel_rules());
  pipeline.add(merge_equal_nodes());
  pipeline.add(eliminate_dead_code());
  pipeline.add(compact_ids());
  return pipeline;
}

}  // namespace argosy::executorch
