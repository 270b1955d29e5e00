#include "backends/executorch/lowering.h"

#include <array>
#include <memory>

#include "backends/executorch/bounds.h"
#include "backends/executorch/fold_weights.h"
#include "backends/executorch/generation/specialise.h"
#include "backends/executorch/kernels.h"
#include "backends/executorch/quantize.h"
#include "backends/executorch/quantize_layers.h"
#include "backends/executorch/rules.h"
#include "backends/executorch/sharpen_sizes.h"
#include "backends/executorch/xnnpack/delegate.h"
#include "passes/compact_ids.h"
#include "passes/decompose_complex.h"
#include "passes/eliminate_dead_code.h"
#include "passes/functionalise.h"
#include "passes/legalise.h"
#include "passes/merge_equal_nodes.h"
#include "passes/normalise.h"
#include "passes/rewrite_rules.h"
#include "passes/structures/structures.h"

namespace argosy::executorch {
namespace {

Pass with_rules(std::string name, std::span<const RewriteRule> rules) {
  std::array families = {rules};
  return apply_rules(std::move(name), std::make_shared<RuleTable>(families));
}

Pass legalise_for_executorch() { return legalise("executorch", takes); }
Pass prepare_for_xnnpack() { return with_rules("prepare-for-xnnpack", xnnpack_rules()); }
Pass select_kernels() { return with_rules("select-kernels", kernel_rules()); }

Pass bound_dims(const std::map<std::string, int64_t>& largest) {
  auto run = [largest](Program& program, PassContext&) -> Result<bool> {
    for (const Component& component : program.components) {
      ARGOSY_TRY_STATUS(set_bounds(component, largest));
      bound_selections(program, component);
    }
    return false;
  };
  return {"bound-dims", std::move(run), settings_text(largest)};
}

/// A dim that has one size is a number everywhere.
Pass fix_sizes(const std::map<std::string, int64_t>& fixed) {
  auto run = [fixed](Program& program, PassContext&) -> Result<bool> {
    for (Component& component : program.components) {
      std::map<std::string, SymExpr> numbers;
      for (const auto& [symbol, name] : component.dim_names) {
        auto found = fixed.find(name);
        if (found != fixed.end()) numbers.emplace(symbol, component.symbols->integer(found->second));
      }
      if (!numbers.empty()) specialise(component, numbers);
    }
    return true;
  };
  return {"fix-sizes", std::move(run), settings_text(fixed)};
}

Pass quantize(const std::map<std::string, int64_t>& settings) {
  auto number = [&](const char* name) { return settings.contains(name) ? settings.at(name) : 0; };
  LoweringOptions options;
  options.recipe = static_cast<Recipe>(number("recipe"));
  options.linear = {static_cast<LinearEncoding>(number("linear")), number("linear-group")};
  options.encoder_linear = {static_cast<LinearEncoding>(number("encoder")), number("encoder-group")};
  options.embedding = {static_cast<EmbeddingEncoding>(number("embedding")), number("embedding-group")};
  Pass pass = quantize_weights(options);
  pass.settings = settings_text(settings);
  return pass;
}

Pass quantize(const LoweringOptions& options) {
  return quantize(std::map<std::string, int64_t>{{"recipe", static_cast<int64_t>(options.recipe)},
                                                 {"linear", static_cast<int64_t>(options.linear.encoding)},
                                                 {"linear-group", options.linear.group_size},
                                                 {"encoder", static_cast<int64_t>(options.encoder_linear.encoding)},
                                                 {"encoder-group", options.encoder_linear.group_size},
                                                 {"embedding", static_cast<int64_t>(options.embedding.encoding)},
                                                 {"embedding-group", options.embedding.group_size}});
}

Pass quantize_whole(const std::map<std::string, int64_t>& settings) {
  auto is_wanted = [&](const char* name) { return settings.contains(name) && settings.at(name) != 0; };
  LoweringOptions options;
  if (is_wanted("linear")) options.linear.encoding = LinearEncoding::k8a8w;
  if (is_wanted("encoder")) options.encoder_linear.encoding = LinearEncoding::k8a8w;
  if (is_wanted("convolution")) options.convolution = ConvolutionEncoding::k8a8w;
  Pass pass = quantize_layers(options);
  pass.settings = settings_text(settings);
  return pass;
}

Pass quantize_whole(const LoweringOptions& options) {
  return quantize_whole({{"linear", options.linear.encoding == LinearEncoding::k8a8w},
                         {"encoder", options.encoder_linear.encoding == LinearEncoding::k8a8w},
                         {"convolution", options.convolution == ConvolutionEncoding::k8a8w}});
}

template <Pass (*make)(const std::map<std::string, int64_t>&)>
Result<Pass> from_settings(std::string_view text) {
  ARGOSY_TRY(auto numbers, parse_settings(text));
  return make(numbers);
}

// In the order in which they run.
constexpr NamedPass kPasses[] = {
    {"fix-sizes", "dims of one size become numbers, {batch=1}", nullptr, from_settings<fix_sizes>},
    {"sharpen-sizes", "sizes that data decides are written by what is known of them", sharpen_sizes},
    {"bound-dims", "the largest sizes of dims, {sequence=128}", nullptr, from_settings<bound_dims>},
    {"fold-weights", "compute once what depends on weights alone", fold_weights},
    {"quantize-weights", "store weights in few bits, {linear=1,linear-group=32}", nullptr, from_settings<quantize>},
    {"quantize-layers", "layers of integers, by ranges that are noted, {linear=1,convolution=1}", nullptr,
     from_settings<quantize_whole>},
    {"legalise-for-executorch", "write what has no kernel in other ops; after normalise", legalise_for_executorch},
    {"prepare-for-xnnpack", "write what XNNPACK computes in the forms that it takes", prepare_for_xnnpack},
    {"delegate-to-xnnpack", "cut out what XNNPACK computes into graphs of its own", delegate_to_xnnpack},
    {"select-kernels", "write the rest in the forms that kernels take", select_kernels},
};

}  // namespace

std::span<const NamedPass> lowering_passes() { return kPasses; }

Pipeline executorch_pipeline(const LoweringOptions& options) {
  Pipeline pipeline;
  // Before legalise: bind-task puts custom_sdpa in the place of scaled_dot_product_attention over caches.
  pipeline.add(decompose_attention());
  pipeline.add(functionalise());
  pipeline.add(normalise());
  pipeline.add(decompose_complex());
  pipeline.add(eliminate_dead_code());
  if (options.task) {
    pipeline.add(bind_task(*options.task));
    pipeline.add(eliminate_dead_code());
  }
  if (!options.fixed.empty()) {
    pipeline.add(fix_sizes(options.fixed));
    pipeline.add(eliminate_dead_code());
  }
  pipeline.add(sharpen_sizes());
  // Once more, for what a task added and for sizes that became numbers.
  pipeline.add(normalise());
  pipeline.add(bound_dims(options.largest));
  pipeline.add(fold_weights());
  pipeline.add(quantize(options));
  if (options.needs_ranges()) pipeline.add(quantize_whole(options));
  pipeline.add(legalise_for_executorch());
  pipeline.add(merge_equal_nodes());
  if (options.recipe == Recipe::kXnnpack) {
    pipeline.add(prepare_for_xnnpack());
    pipeline.add(merge_equal_nodes());
    pipeline.add(eliminate_dead_code());
    pipeline.add(delegate_to_xnnpack());
  }
  pipeline.add(select_kernels());
  pipeline.add(merge_equal_nodes());
  pipeline.add(eliminate_dead_code());
  pipeline.add(compact_ids());
  return pipeline;
}

}  // namespace argosy::executorch
