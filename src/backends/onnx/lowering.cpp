#include "backends/onnx/lowering.h"

#include "backends/onnx/cached_attention.h"
#include "backends/onnx/linear_attention.h"
#include "backends/onnx/mixture_of_experts.h"
#include "backends/onnx/multi_head_attention.h"
#include "backends/onnx/quantize.h"
#include "backends/onnx/sum_and_norm.h"
#include "backends/onnx/translations.h"
#include "passes/compact_ids.h"
#include "passes/decompose_complex.h"
#include "passes/eliminate_dead_code.h"
#include "passes/fix_dims.h"
#include "passes/functionalise.h"
#include "passes/legalise.h"
#include "passes/normalise.h"
#include "passes/structures/recognise.h"

namespace argosy::onnx {
namespace {

Pass legalise_for_onnx(const LoweringOptions& options) {
  Pass pass = legalise("onnx", taken_with(options));
  pass.settings =
      settings_text({{"opset", options.opset}, {"runtime-ops", static_cast<int64_t>(options.runtime_ops.bits())}});
  return pass;
}

Result<Pass> legalise_with(std::string_view settings) {
  ARGOSY_TRY(auto numbers, parse_settings(settings));
  LoweringOptions options;
  if (numbers.contains("opset")) options.opset = static_cast<int>(numbers.at("opset"));
  if (numbers.contains("runtime-ops"))
    options.runtime_ops = RuntimeOps(static_cast<uint64_t>(numbers.at("runtime-ops")));
  return legalise_for_onnx(options);
}

constexpr NamedPass kPasses[] = {
    {"legalise-for-onnx", "write what ONNX lacks in other ops, {opset=22,runtime-ops=0}; after normalise", nullptr,
     legalise_with},
    {"use-group-query-attention",
     "attention over a cache as one op of ONNX Runtime's, {positions=2048,joins=1,types=3,packs=1}; after normalise",
     nullptr, use_group_query_attention_with},
    {"join-sums-and-norms", "RMS norms of sums as one op of ONNX Runtime's; after recognise", join_sums_and_norms},
    {"use-linear-attention", "scans over a state of keys and values as one op of ONNX Runtime's; after normalise",
     use_linear_attention},
    {"use-mixture-of-experts", "experts and what sorts tokens for them as one op of ONNX Runtime's; after normalise",
     use_mixture_of_experts},
    {"use-multi-head-attention", "attention without a cache as one op of ONNX Runtime's; after recognise",
     use_multi_head_attention},
    {"quantize-weights-for-onnx", "store weights in few bits, {bits=4,block=32,at:lm_head=8}; after legalise-for-onnx",
     nullptr, quantize_weights_with},
};

}  // namespace

std::span<const NamedPass> lowering_passes() { return kPasses; }

Pipeline onnx_pipeline(const LoweringOptions& options, std::optional<Pass> bind) {
  Pipeline pipeline;
  pipeline.add(fix_dims());
  pipeline.add(functionalise());
  pipeline.add(normalise());
  if (bind) {
    pipeline.add(eliminate_dead_code());  // so that inputs that nothing needs are not read
    pipeline.add(*std::move(bind));
  }
  if (options.optimize != Optimize::kOff && (!options.runtime_ops.is_empty() || options.opset >= kOpsetOfNorms)) {
    pipeline.add(recognise());
    pipeline.add(eliminate_dead_code());  // what was recognised is read no more
    const RuntimeOps& ops = options.runtime_ops;
    if (ops.has(RuntimeOp::kGroupQueryAttention) && options.pads_at_end) {
      pipeline.add(use_group_query_attention({.longest_text = options.longest_text,
                                              .joins_weights = options.joins_weights,
                                              .takes_f32 = ops.takes(RuntimeOp::kGroupQueryAttention, DType::kF32),
                                              .takes_f16 = ops.takes(RuntimeOp::kGroupQueryAttention, DType::kF16),
                                              .packs = options.packs_attention}));
    }
    if (ops.has(RuntimeOp::kLinearAttention)) pipeline.add(use_linear_attention());
    if (ops.has(RuntimeOp::kMultiHeadAttention)) pipeline.add(use_multi_head_attention());
    if (ops.has(RuntimeOp::kMixtureOfExperts) && options.joins_weights) pipeline.add(use_mixture_of_experts());
    if (ops.has(RuntimeOp::kSkipSimplifiedLayerNormalization)) pipeline.add(join_sums_and_norms());
    pipeline.add(join_views());
    pipeline.add(eliminate_dead_code());
  }
  pipeline.add(decompose_complex());
  pipeline.add(legalise_for_onnx(options));
  pipeline.add(normalise());
  if (options.quantization.is_wanted()) pipeline.add(quantize_weights(options.quantization));
  pipeline.add(eliminate_dead_code());
  pipeline.add(compact_ids());
  return pipeline;
}

}  // namespace argosy::onnx
