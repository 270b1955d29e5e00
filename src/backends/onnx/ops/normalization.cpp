#include <limits>
#include <numeric>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// The number 1 or 0 for every element of a shape of fixed sizes.
Ref constant_of(const NodeTranslator& e, Shape shape, double value, DType dtype) {
  return e.builder().fill(e.sizes(shape), e.builder().scalar(value, dtype));
}

/// Mean and 1 / sqrt(variance + eps) over axes, which stay as dims of size 1.
std::pair<Ref, Ref> statistics(const NodeTranslator& e, Ref value, const Ints& axes, double eps) {
  Ref mean = e.reduce("ReduceMean", value, axes, true);
  Ref centred = e.sub(value, mean);
  Ref variance = e.reduce("ReduceMean", e.mul(centred, centred), axes, true);
  return {mean, e.node("Reciprocal", {e.node("Sqrt", {e.add(variance, e.like(variance, eps))})})};
}

// layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, …)
// native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, …)
void emit_layer_norm(const NodeTranslator& e, const Translation&) {
  auto dims = static_cast<int64_t>(e.integers("normalized_shape").size());
  Shape shape = e.shape("input");
  Ref weight = e.tensor("weight");
  DType dtype = e.type("input").dtype;
  if (!weight.is_valid()) weight = constant_of(e, shape.last(static_cast<size_t>(dims)), 1, dtype);
  Refs inputs = {e.tensor("input"), e.cast(weight, dtype)};
  if (e.has("bias")) inputs.push_back(e.cast(e.tensor("bias"), dtype));
  Ref input = e.tensor("input");
  Ref result = e.node("LayerNormalization", std::move(inputs),
                      {{"axis", -dims}, {"epsilon", static_cast<float>(e.real("eps"))}});
  if (e.result_count() == 1) return e.yield(result);
  Ints axes(static_cast<size_t>(dims));
  std::iota(axes.begin(), axes.end(), e.rank("input") - dims);
  auto [mean, scale] = statistics(e, input, axes, e.real("eps"));
  e.yield(Refs{result, mean, scale});
}

// rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor
void emit_rms_norm(const NodeTranslator& e, const Translation&) {
  auto dims = static_cast<int64_t>(e.integers("normalized_shape").size());
  DType dtype = e.type("input").dtype;
  Ref weight = e.tensor("weight");
  if (!weight.is_valid()) weight = constant_of(e, e.shape("input").last(static_cast<size_t>(dims)), 1, dtype);
  double eps = e.has("eps") ? e.real("eps") : static_cast<double>(std::numeric_limits<float>::epsilon());
  // The op of ONNX Runtime's has no domain of its own. Every opset has it there.
  e.yield(e.node(e.opset() >= kOpsetOfNorms ? "RMSNormalization" : "SimplifiedLayerNormalization",
                 {e.tensor("input"), e.cast(weight, dtype)}, {{"axis", -dims}, {"epsilon", static_cast<float>(eps)}}));
}

// sum_and_norm(Tensor a, Tensor b, Tensor weight, float eps) -> (Tensor, Tensor)
void emit_sum_and_norm(const NodeTranslator& e, const Translation&) {
  Refs results = e.builder().node("com.microsoft.SkipSimplifiedLayerNormalization",
                                  {e.tensor("a"), e.tensor("b"), e.tensor("weight")}, 4,
                                  {{"epsilon", static_cast<float>(e.real("eps"))}});
  // The second and third, mean and deviation, are for training; without a name they are not asked for.
  Refs& outputs = e.builder().model().graphs[e.builder().current_graph()].nodes.back().outputs;
  outputs[1] = outputs[2] = {};
  e.yield({results[0], results[3]});
}

bool has_rms_norm(const LoweringOptions& options) {
  return options.opset >= kOpsetOfNorms || options.runtime_ops.has(RuntimeOp::kSimplifiedLayerNormalization);
}

/// A vector [channels] so that it broadcasts over [batch, channels, ...].
Ref over_channels(const NodeTranslator& e, Ref vector, int64_t rank) {
  Ints axes;
  for (int64_t axis = 1; axis < rank - 1; ++axis) axes.push_back(axis);
  return e.unsqueeze(vector, axes);
}

// group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, …) -> Tensor
void emit_group_norm(const NodeTranslator& e, const Translation& row) {
  bool is_native = row.op == "aten.native_group_norm.default";
  std::string_view name = "input";
  int64_t groups = is_native ? e.integer("group") : e.integer("num_groups");
  Shape shape = e.shape(name);
  DType dtype = e.type(name).dtype;
  SymExpr rest = e.elements(shape.subspan(1));
  std::vector<SymExpr> grouped = {shape[0], e.number(groups), e.symbols().floor_div(rest, e.number(groups))};
  std::vector<SymExpr> channels = {e.number(groups)};
  Ref value = e.node("InstanceNormalization",
                     {e.reshape(e.tensor(name), shape, grouped), constant_of(e, channels, 1, dtype),
                      constant_of(e, channels, 0, dtype)},
                     {{"epsilon", static_cast<float>(e.real("eps"))}});
  auto [mean, scale] = statistics(e, e.reshape(e.tensor(name), shape, grouped), {2}, e.real("eps"));
  value = e.reshape(value, grouped, shape);
  if (e.has("weight")) value = e.mul(value, over_channels(e, e.tensor("weight"), e.rank(name)));
  if (e.has("bias")) value = e.add(value, over_channels(e, e.tensor("bias"), e.rank(name)));
  if (e.result_count() == 1) return e.yield(value);
  e.yield(Refs{value, e.squeeze(mean, {2}), e.squeeze(scale, {2})});
}

// batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training,
//            float momentum, float eps, bool cudnn_enabled) -> Tensor
void emit_batch_norm(const NodeTranslator& e, const Translation& row) {
  bool is_training = row.op == "aten.batch_norm.default" && e.flag("training");
  if (is_training) e.decline("batch normalisation while training", "export the model in eval() mode");
  DType dtype = e.type("input").dtype;
  Shape channels = e.shape("running_mean");
  Ref weight = e.has("weight") ? e.tensor("weight") : constant_of(e, channels, 1, dtype);
  Ref bias = e.has("bias") ? e.tensor("bias") : constant_of(e, channels, 0, dtype);
  Ref result = e.node("BatchNormalization",
                      {e.tensor("input"), e.cast(weight, dtype), e.cast(bias, dtype),
                       e.cast(e.tensor("running_mean"), dtype), e.cast(e.tensor("running_var"), dtype)},
                      {{"epsilon", static_cast<float>(e.real("eps"))}});
  if (e.result_count() == 1) return e.yield(result);
  std::vector<SymExpr> nothing = {e.number(0)};
  Ref none = constant_of(e, nothing, 0, dtype);  // statistics of the batch, which are not computed
  e.yield(Refs{result, none, none});
}

// instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var,
//               bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor
void emit_instance_norm(const NodeTranslator& e, const Translation&) {
  if (!e.flag("use_input_stats")) e.decline("instance normalisation by stored statistics");
  DType dtype = e.type("input").dtype;
  Shape channels = e.shape("input").subspan(1, 1);
  Ref weight = e.has("weight") ? e.tensor("weight") : constant_of(e, channels, 1, dtype);
  Ref bias = e.has("bias") ? e.tensor("bias") : constant_of(e, channels, 0, dtype);
  e.yield(e.node("InstanceNormalization", {e.tensor("input"), weight, bias},
                 {{"epsilon", static_cast<float>(e.real("eps"))}}));
}

constexpr Translation kNormalization[] = {
    {"aten.layer_norm.default", emit_layer_norm},
    {"aten.native_layer_norm.default", emit_layer_norm},
    {"aten.group_norm.default", emit_group_norm},
    {"aten.native_group_norm.default", emit_group_norm},
    {"aten.batch_norm.default", emit_batch_norm, {}, "BatchNormalization"},
    {"aten._native_batch_norm_legit_no_training.default", emit_batch_norm, {}, "BatchNormalization"},
    {"aten.instance_norm.default", emit_instance_norm},
    {"aten.rms_norm.default", emit_rms_norm, {}, "RMSNormalization", has_rms_norm},
    {"onnx.sum_and_norm.default", emit_sum_and_norm},
};

}  // namespace

std::span<const Translation> normalization_translations() { return kNormalization; }

}  // namespace argosy::onnx
