#include <algorithm>
#include <utility>

#include "backends/executorch/xnnpack/builder.h"

namespace argosy::executorch {
namespace {

using Kind = XnnpackBuilder::Kind;

/// A convolution over two dims; one over one dim has a height of 1.
struct Convolution {
  bool is_transposed = false;
  bool is_flat = false;  // over one dim
  std::vector<int64_t> stride, padding, dilation, added;
  int64_t groups = 1;
  int64_t inputs = 0, outputs = 0;  // channels of a group
  int64_t height = 1, width = 1;    // of the kernel

  bool is_depthwise() const { return !is_transposed && groups > 1 && inputs == 1; }
};

/// A list for every dim, or one number for all; with a dim in front for one that is not there.
std::optional<std::vector<int64_t>> with_two_dims(std::optional<std::vector<int64_t>> list, bool is_flat,
                                                  int64_t missing) {
  size_t dims = is_flat ? 1 : 2;
  if (!list || list->empty() || list->size() > dims) return std::nullopt;
  if (list->size() < dims) list->resize(dims, list->front());
  if (is_flat) list->insert(list->begin(), missing);
  return list;
}

std::optional<Convolution> read(const NodeView& view) {
  Convolution conv;
  std::string_view op = view.schema().name;
  ValueId input = *view.tensor("input"), weight = *view.tensor("weight");
  size_t rank = view.rank(input);
  if ((rank != 3 && rank != 4) || view.rank(weight) != rank || !view.is_constant(weight)) return std::nullopt;
  conv.is_flat = rank == 3;
  conv.is_transposed =
      op.find("transpose") != op.npos || (view.has("transposed") && view.boolean("transposed") == true);
  auto stride = with_two_dims(view.integers("stride"), conv.is_flat, 1);
  auto padding = with_two_dims(view.integers("padding"), conv.is_flat, 0);
  auto dilation = with_two_dims(view.integers("dilation"), conv.is_flat, 1);
  std::optional<std::vector<int64_t>> added(std::vector<int64_t>{0, 0});
  if (conv.is_transposed) added = with_two_dims(view.integers("output_padding"), conv.is_flat, 0);
  std::optional<int64_t> groups = view.integer("groups");
  if (!stride || !padding || !dilation || !added || !groups || *groups < 1) return std::nullopt;
  conv.stride = *stride, conv.padding = *padding, conv.dilation = *dilation, conv.added = *added;
  conv.groups = *groups;
  for (const auto* list : {&conv.stride, &conv.padding, &conv.dilation, &conv.added}) {
    if (std::ranges::any_of(*list, [](int64_t number) { return number < 0 || number > 65535; })) return std::nullopt;
  }
  std::vector<int64_t> shape;
  for (size_t i = 0; i < rank; ++i) {
    std::optional<int64_t> size = view.size(weight, i);
    if (!size || *size < 1) return std::nullopt;
    shape.push_back(*size);
  }
  if (shape[0] % conv.groups != 0) return std::nullopt;
  conv.height = conv.is_flat ? 1 : shape[2];
  conv.width = shape.back();
  conv.outputs = conv.is_transposed ? shape[1] : shape[0] / conv.groups;
  conv.inputs = conv.is_transposed ? shape[0] / conv.groups : shape[1];
  return conv;
}

bool supports_convolution(const NodeView& view) {
  std::optional<Convolution> conv = read(view);
  std::optional<ValueId> bias = view.tensor("bias");
  if (!conv) return false;
  if (bias &&
      (!view.is_constant(*bias) || view.rank(*bias) != 1 || view.size(*bias, 0) != conv->groups * conv->outputs)) {
    return false;
  }
  // A convolution over one dim is reshaped, where one size may vary.
  return !conv->is_flat || (view.dynamic_dims(*view.tensor("input")) <= 1 && view.dynamic_dims(view.output()) <= 1);
}

/// The filter as XNNPACK has it: [out, height, width, in of a group], of a depthwise one [1, height, width, out].
struct Filter {
  TensorSourcePtr source;
  std::vector<uint32_t> dims;
};

Result<Filter> filter(const NodeView& view, const Convolution& conv) {
  TensorSourcePtr source = view.program()[view.graph()[*view.tensor("weight")].weight].source;
  int64_t groups = conv.groups, in = conv.inputs, out = conv.outputs, height = conv.height, width = conv.width;
  std::vector<int64_t> dims = {groups * out, height, width, in};
  if (conv.is_transposed) {
    // [groups, in, out, …] -> [groups, out, …, in]
    ARGOSY_TRY(source, reshaped(source, {groups, in, out, height, width}));
    ARGOSY_TRY(source, transposed(source, {0, 2, 3, 4, 1}));
  } else if (conv.is_depthwise()) {
    ARGOSY_TRY(source, reshaped(source, {groups * out, height, width}));
    ARGOSY_TRY(source, transposed(source, {1, 2, 0}));
    dims = {1, height, width, groups * out};
  } else {
    ARGOSY_TRY(source, reshaped(source, {groups * out, in, height, width}));
    ARGOSY_TRY(source, transposed(source, {0, 2, 3, 1}));
  }
  ARGOSY_TRY(source, reshaped(source, dims));
  return Filter{std::move(source), {dims.begin(), dims.end()}};
}

bool is_static(const NodeView& view) { return view.has("input_scale"); }

bool supports_static_convolution(const NodeView& view) { return supports_static(view) && supports_convolution(view); }

/// [n, c, l] as [n, 1, l, c]
Result<XnnId> with_height(const NodeView& view, XnnpackBuilder& builder, ValueId value) {
  ARGOSY_TRY(XnnId input, builder.row_major(value));
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(value));
  DType dtype = view.type(value).dtype;
  std::vector<uint32_t> turned = {dims[0], dims[2], dims[1]}, wide = {dims[0], 1, dims[2], dims[1]};
  XnnId last = builder.temporary(dtype, turned), result = builder.temporary(dtype, wide);
  builder.transpose(input, last, std::vector<uint32_t>{0, 2, 1});
  auto size = [&](size_t dim) { return static_cast<uint32_t>(view.size(value, dim).value_or(0)); };
  builder.reshape(last, result, std::vector<uint32_t>{size(0), 1, size(2), size(1)});
  return result;
}

Status without_height(const NodeView& view, XnnpackBuilder& builder, XnnId wide, ValueId value) {
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(value));
  std::vector<uint32_t> turned = {dims[0], dims[2], dims[1]};
  XnnId last = builder.temporary(view.type(value).dtype, turned);
  auto size = [&](size_t dim) { return static_cast<uint32_t>(view.size(value, dim).value_or(0)); };
  builder.reshape(wide, last, std::vector<uint32_t>{size(0), size(2), size(1)});
  ARGOSY_TRY(XnnId output, builder.result(value));
  builder.transpose(last, output, std::vector<uint32_t>{0, 2, 1});
  return {};
}

/// The filter and the bias.
Result<std::pair<XnnId, XnnId>> constants(const NodeView& view, XnnpackBuilder& builder, const Convolution& conv) {
  const Weight& weight = view.program()[view.graph()[*view.tensor("weight")].weight];
  ARGOSY_TRY(Filter stored, filter(view, conv));
  if (is_static(view)) {
    const Weight& scales = view.program()[view.graph()[*view.tensor("scales")].weight];
    QuantizedWeight integers{fb_xnnpack::XNNDatatype::xnn_datatype_qcint8, std::move(stored.source), scales.source, 0,
                             weight.name};
    if (conv.is_depthwise()) integers.channel_dim = 3;
    XnnId values = builder.quantized_constant(integers, stored.dims);
    return std::pair(values, builder.quantized_bias(view));
  }
  ARGOSY_TRY(XnnId values, builder.packed_constant(weight.name, std::move(stored.source), stored.dims));
  XnnId bias = kNoXnn;
  if (std::optional<ValueId> given = view.tensor("bias")) {
    ARGOSY_TRY(bias, builder.packed(*given));
  }
  return std::pair(values, bias);
}

Status emit_convolution(const NodeView& view, XnnpackBuilder& builder) {
  Convolution conv = *read(view);
  ValueId value = *view.tensor("input"), result = view.output();
  // With channels last.
  auto wide = [&](ValueId given) -> Result<std::vector<uint32_t>> {
    ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(given));
    if (conv.is_flat) return std::vector<uint32_t>{dims[0], 1, dims[2], dims[1]};
    return std::vector<uint32_t>{dims[0], dims[2], dims[3], dims[1]};
  };
  ARGOSY_TRY(std::vector<uint32_t> input_dims, wide(value));
  ARGOSY_TRY(std::vector<uint32_t> output_dims, wide(result));
  ARGOSY_TRY(XnnId input, conv.is_flat ? with_height(view, builder, value) : builder.channels_last(value));
  if (is_static(view)) input = builder.rounded(input, input_dims, rounding_of(view, "input"));
  ARGOSY_TRY(auto both, constants(view, builder, conv));
  XnnId sums = kNoXnn, output = kNoXnn;  // sums: of integers
  if (is_static(view)) sums = builder.rounded_temporary(output_dims, rounding_of(view, "output"));
  if (conv.is_flat) {
    output = builder.temporary(view.type(result).dtype, output_dims);
  } else {
    ARGOSY_TRY(output, builder.result_channels_last(result));
  }
  auto number = [](int64_t given) { return static_cast<uint32_t>(given); };
  Kind kind = conv.is_transposed    ? Kind::XNNConvTranspose2d
              : conv.is_depthwise() ? Kind::XNNDepthwiseConv2d
                                    : Kind::XNNConv2d;
  uint32_t top = number(conv.padding[0]), left = number(conv.padding[1]);
  builder.node(kind, fb_xnnpack::Create_XNNNodeConv(builder.buffer(), top, left, top, left, number(conv.height),
                                                    number(conv.width), number(conv.stride[0]), number(conv.stride[1]),
                                                    number(conv.dilation[0]), number(conv.dilation[1]),
                                                    number(conv.inputs), number(conv.outputs), number(conv.groups),
                                                    number(conv.added[0]), number(conv.added[1]), input, both.first,
                                                    both.second, is_static(view) ? sums : output, 0));
  if (is_static(view)) builder.unary(Kind::XNNConvert, sums, output);
  if (conv.is_flat) return without_height(view, builder, output, result);
  return {};
}

using enum Effort;

constexpr XnnpackOp kConvolutionsOps[] = {
    {"argosy.static_convolution.default", kHeavy, supports_static_convolution, emit_convolution, true},
    {"aten.conv1d.default", kHeavy, supports_convolution, emit_convolution},
    {"aten.conv2d.default", kHeavy, supports_convolution, emit_convolution},
    {"aten.conv_transpose1d.default", kHeavy, supports_convolution, emit_convolution},
    {"aten.conv_transpose2d.input", kHeavy, supports_convolution, emit_convolution},
    {"aten.convolution.default", kHeavy, supports_convolution, emit_convolution},
};

}  // namespace

std::span<const XnnpackOp> xnnpack_convolutions() { return kConvolutionsOps; }

}  // namespace argosy::executorch
