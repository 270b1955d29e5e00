#include <algorithm>

#include "backends/executorch/xnnpack/builder.h"

namespace argosy::executorch {
namespace {

using Kind = XnnpackBuilder::Kind;

// ---- pooling ----

struct Pooling {
  std::vector<int64_t> kernel, stride, padding = {0, 0}, dilation = {1, 1};
};

std::optional<std::vector<int64_t>> pair_of(const NodeView& view, std::string_view argument) {
  std::optional<std::vector<int64_t>> list = view.integers(argument);
  if (list && list->size() == 1) list->push_back(list->front());
  if (!list || list->size() != 2) return std::nullopt;
  return list;
}

std::optional<Pooling> read_pooling(const NodeView& view) {
  Pooling pooling;
  auto kernel = pair_of(view, "kernel_size"), stride = pair_of(view, "stride"), padding = pair_of(view, "padding");
  // Without strides, they are the kernel's sizes.
  if (const auto* list = view["stride"].get_if<IntList>(); list != nullptr && list->empty()) stride = kernel;
  if (!kernel || !stride || !padding || view.boolean("ceil_mode") != false) return std::nullopt;
  pooling = {*kernel, *stride, *padding, {1, 1}};
  if (view.has("dilation")) {
    auto dilation = pair_of(view, "dilation");
    if (!dilation) return std::nullopt;
    pooling.dilation = *dilation;
  }
  bool is_plain = std::ranges::all_of(pooling.kernel, [](int64_t size) { return size >= 1; }) &&
                  std::ranges::all_of(pooling.stride, [](int64_t size) { return size >= 1; }) &&
                  std::ranges::all_of(pooling.padding, [](int64_t size) { return size >= 0; }) &&
                  std::ranges::all_of(pooling.dilation, [](int64_t size) { return size >= 1; });
  // XNNPACK does not pool windows of one element.
  if (!is_plain || view.rank(*view.tensor("self")) != 4 || pooling.kernel[0] * pooling.kernel[1] == 1) {
    return std::nullopt;
  }
  return pooling;
}

bool supports_max_pool(const NodeView& view) {
  bool has_indices = view.node().outputs.size() > 1 && !view.graph()[view.output(1)].uses.empty();
  return !has_indices && read_pooling(view).has_value();
}

bool supports_average_pool(const NodeView& view) {
  std::optional<Pooling> pooling = read_pooling(view);
  // PyTorch may count padding in the mean, XNNPACK does not.
  bool is_padded = pooling && (pooling->padding[0] > 0 || pooling->padding[1] > 0);
  return pooling && view["divisor_override"].is<None>() && (!is_padded || view.boolean("count_include_pad") == false);
}

template <Kind kKind>
Status emit_pool(const NodeView& view, XnnpackBuilder& builder) {
  Pooling pooling = *read_pooling(view);
  ARGOSY_TRY(XnnId input, builder.channels_last(*view.tensor("self")));
  ARGOSY_TRY(XnnId output, builder.result_channels_last(view.output()));
  auto number = [](int64_t value) { return static_cast<uint32_t>(value); };
  uint32_t top = number(pooling.padding[0]), left = number(pooling.padding[1]);
  builder.node(kKind, fb_xnnpack::Create_XNNPooling2D(builder.buffer(), top, left, top, left, number(pooling.kernel[0]),
                                                      number(pooling.kernel[1]), number(pooling.stride[0]),
                                                      number(pooling.stride[1]), number(pooling.dilation[0]),
                                                      number(pooling.dilation[1]), input, output, 0));
  return {};
}

bool supports_adaptive(const NodeView& view) {
  return pair_of(view, "output_size") == std::vector<int64_t>{1, 1} && view.rank(*view.tensor("self")) == 4;
}

Status emit_global_mean(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(XnnId input, builder.channels_last(*view.tensor("self")));
  ARGOSY_TRY(XnnId output, builder.result_channels_last(view.output()));
  builder.unary(Kind::XNNGlobalAvgPooling2d, input, output, kKeepDims);
  return {};
}

// ---- sizes ----

bool supports_resize(const NodeView& view) {
  ValueId self = *view.tensor(view.has("input") ? "input" : "self"), result = view.output();
  return view.rank(self) == 4 && view.size(self, 2) && view.size(self, 3) && view.size(result, 2) &&
         view.size(result, 3) && view.boolean("align_corners").has_value();
}

Status emit_resize(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(XnnId input, builder.channels_last(*view.tensor(view.has("input") ? "input" : "self")));
  ARGOSY_TRY(XnnId output, builder.result_channels_last(view.output()));
  auto height = static_cast<uint32_t>(*view.size(view.output(), 2));
  auto width = static_cast<uint32_t>(*view.size(view.output(), 3));
  builder.node(Kind::XNNStaticResizeBilinear2D,
               fb_xnnpack::CreateXNNStaticResizeBilinear2D(builder.buffer(), height, width, input, output,
                                                           *view.boolean("align_corners") ? kAlignCorners : 0));
  return {};
}

// ---- channels ----

/// Vectors of channels, which with channels last are broadcast as they are.
bool is_channels(const NodeView& view, std::string_view argument) {
  std::optional<ValueId> value = view.tensor(argument);
  return value && view.is_constant(*value) && view.rank(*value) == 1;
}

bool supports_batch_norm(const NodeView& view) {
  bool is_evaluated = !view.has("training") || view.boolean("training") == false;
  for (size_t i = 1; i < view.node().outputs.size(); ++i) {
    is_evaluated = is_evaluated && view.graph()[view.output(i)].uses.empty();
  }
  bool has_weight = is_channels(view, "weight"), has_bias = is_channels(view, "bias");
  return is_evaluated && view.rank(*view.tensor("input")) == 4 && view.number("eps") &&
         is_channels(view, "running_mean") && is_channels(view, "running_var") &&
         (has_weight || view["weight"].is<None>()) && (has_bias || view["bias"].is<None>());
}

/// (x - mean) * (weight / sqrt(variance + eps)) + bias; what is the same for all places is computed for each channel.
Status emit_batch_norm(const NodeView& view, XnnpackBuilder& builder) {
  ValueId value = *view.tensor("input");
  DType dtype = view.type(value).dtype;
  ARGOSY_TRY(XnnId input, builder.channels_last(value));
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(value));
  dims = {dims[0], dims[2], dims[3], dims[1]};
  std::vector<uint32_t> channels = {dims[3]};
  ARGOSY_TRY(XnnId mean, builder.row_major(*view.tensor("running_mean")));
  ARGOSY_TRY(XnnId variance, builder.row_major(*view.tensor("running_var")));
  ARGOSY_TRY(XnnId eps, builder.scalar(*view.number("eps"), dtype));
  XnnId raised = builder.temporary(dtype, channels), factor = builder.temporary(dtype, channels);
  builder.binary(Kind::XNNAdd, variance, eps, raised);
  builder.unary(Kind::XNNReciprocalSquareRoot, raised, factor);
  if (std::optional<ValueId> weight = view.tensor("weight")) {
    ARGOSY_TRY(XnnId id, builder.row_major(*weight));
    XnnId scaled = builder.temporary(dtype, channels);
    builder.binary(Kind::XNNMultiply, factor, id, scaled);
    factor = scaled;
  }
  XnnId centred = builder.temporary(dtype, dims);
  builder.binary(Kind::XNNSubtract, input, mean, centred);
  std::optional<ValueId> bias = view.tensor("bias");
  XnnId scaled = kNoXnn;
  if (bias) {
    scaled = builder.temporary(dtype, dims);
    builder.binary(Kind::XNNMultiply, centred, factor, scaled);
    ARGOSY_TRY(XnnId id, builder.row_major(*bias));
    ARGOSY_TRY(XnnId output, builder.result_channels_last(view.output()));
    builder.binary(Kind::XNNAdd, scaled, id, output);
  } else {
    ARGOSY_TRY(XnnId output, builder.result_channels_last(view.output()));
    builder.binary(Kind::XNNMultiply, centred, factor, output);
  }
  return {};
}

bool supports_prelu(const NodeView& view) {
  return view.rank(*view.tensor("self")) == 4 && is_channels(view, "weight");
}

Status emit_prelu(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(XnnId input, builder.channels_last(*view.tensor("self")));
  ARGOSY_TRY(XnnId slope, builder.packed(*view.tensor("weight")));
  ARGOSY_TRY(XnnId output, builder.result_channels_last(view.output()));
  builder.binary(Kind::XNNPReLU, input, slope, output);
  return {};
}

using enum Effort;

constexpr XnnpackOp kImagesOps[] = {
    {"aten.adaptive_avg_pool2d.default", kHeavy, supports_adaptive, emit_global_mean},
    {"aten.avg_pool2d.default", kHeavy, supports_average_pool, emit_pool<Kind::XNNAvgPooling2d>},
    {"aten.batch_norm.default", kHeavy, supports_batch_norm, emit_batch_norm},
    {"aten._native_batch_norm_legit_no_training.default", kHeavy, supports_batch_norm, emit_batch_norm},
    {"aten.max_pool2d.default", kHeavy, supports_max_pool, emit_pool<Kind::XNNMaxPooling2d>},
    {"aten.max_pool2d_with_indices.default", kHeavy, supports_max_pool, emit_pool<Kind::XNNMaxPooling2d>},
    {"aten.prelu.default", kComputes, supports_prelu, emit_prelu},
    {"aten.upsample_bilinear2d.default", kHeavy, supports_resize, emit_resize},
    {"aten.upsample_bilinear2d.vec", kHeavy, supports_resize, emit_resize},
};

}  // namespace

std::span<const XnnpackOp> xnnpack_images() { return kImagesOps; }

}  // namespace argosy::executorch
