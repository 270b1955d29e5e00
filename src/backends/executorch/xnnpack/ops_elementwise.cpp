#include <cmath>

#include "backends/executorch/xnnpack/builder.h"

namespace argosy::executorch {
namespace {

using Kind = XnnpackBuilder::Kind;

/// Operands and result of an elementwise op, in the layout in which the operands are.
struct Elementwise {
  std::vector<XnnId> operands;
  XnnId result = kNoXnn;
  std::vector<uint32_t> dims;
  DType dtype = DType::kF32;
};

Result<Elementwise> elementwise(const NodeView& view, XnnpackBuilder& builder, const std::vector<ValueId>& operands) {
  ValueId output = view.output();
  bool is_last = false, can_be_last = view.rank(output) == 4;
  for (ValueId operand : operands) {
    is_last = is_last || builder.prefers_channels_last(operand);
    can_be_last = can_be_last && (view.is_constant(operand) || view.rank(operand) == 4);
  }
  is_last = is_last && can_be_last;
  Elementwise result;
  result.dtype = view.type(output).dtype;
  ARGOSY_TRY(result.dims, builder.dims(output));
  if (is_last) result.dims = {result.dims[0], result.dims[2], result.dims[3], result.dims[1]};
  for (ValueId operand : operands) {
    ARGOSY_TRY(XnnId id, is_last ? builder.channels_last(operand) : builder.row_major(operand));
    result.operands.push_back(id);
  }
  ARGOSY_TRY(result.result, is_last ? builder.result_channels_last(output) : builder.result(output));
  return result;
}

template <Kind kKind>
Status emit_unary(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  builder.unary(kKind, op.operands[0], op.result);
  return {};
}

// ---- two operands ----

bool has_plain_alpha(const NodeView& view) { return !view.has("alpha") || view.number("alpha") == 1.0; }

bool supports_tensors(const NodeView& view) {
  return view.tensor("self") && view.tensor("other") && has_plain_alpha(view);
}

template <Kind kKind>
Status emit_binary(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self"), *view.tensor("other")}));
  builder.binary(kKind, op.operands[0], op.operands[1], op.result);
  return {};
}

bool supports_scalar(const NodeView& view) { return view.number("other") && has_plain_alpha(view); }

template <Kind kKind, bool kIsReversed = false>
Status emit_scalar(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  ARGOSY_TRY(XnnId other, builder.scalar(*view.number("other"), op.dtype));
  builder.binary(kKind, kIsReversed ? other : op.operands[0], kIsReversed ? op.operands[0] : other, op.result);
  return {};
}

bool supports_power(const NodeView& view) {
  std::optional<double> exponent = view.number("exponent");
  return exponent && (*exponent == 2 || *exponent == 3 || *exponent == 0.5 || *exponent == -0.5 || *exponent == -1);
}

Status emit_power(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  double exponent = *view.number("exponent");
  if (exponent == 3) {
    XnnId square = builder.temporary(op.dtype, op.dims);
    builder.unary(Kind::XNNSquare, op.operands[0], square);
    builder.binary(Kind::XNNMultiply, square, op.operands[0], op.result);
  } else if (exponent == -1) {
    ARGOSY_TRY(XnnId one, builder.scalar(1, op.dtype));
    builder.binary(Kind::XNNDiv, one, op.operands[0], op.result);
  } else {
    Kind kind = exponent == 2 ? Kind::XNNSquare : exponent == 0.5 ? Kind::XNNSquareRoot : Kind::XNNReciprocalSquareRoot;
    builder.unary(kind, op.operands[0], op.result);
  }
  return {};
}

Status emit_reciprocal(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  ARGOSY_TRY(XnnId one, builder.scalar(1, op.dtype));
  builder.binary(Kind::XNNDiv, one, op.operands[0], op.result);
  return {};
}

// ---- activations ----

/// relu and other ops that only clamp.
std::optional<XnnpackBuilder::Clamp> limits(const NodeView& view) {
  XnnpackBuilder::Clamp range;
  std::string_view op = view.schema().name;
  if (op == "aten.relu.default") {
    range.min = 0;
  } else if (op == "aten.relu6.default") {
    range = {0, 6};
  } else {
    bool is_hardtanh = op == "aten.hardtanh.default";
    std::string_view low = is_hardtanh ? "min_val" : "min", high = is_hardtanh ? "max_val" : "max";
    std::optional<double> min = view.number(low), max = view.number(high);
    if ((!min && !view[low].is<None>()) || (!max && !view[high].is<None>())) return std::nullopt;
    if (min) range.min = static_cast<float>(*min);
    if (max) range.max = static_cast<float>(*max);
    // XNNPACK refuses an empty range.
    if (!(range.min < range.max)) return std::nullopt;
  }
  return range;
}

bool supports_clamp(const NodeView& view) { return limits(view).has_value(); }

Status emit_clamp(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  builder.clamp(op.operands[0], op.result, *limits(view));
  return {};
}

Status emit_silu(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  XnnId gate = builder.temporary(op.dtype, op.dims);
  builder.unary(Kind::XNNSigmoid, op.operands[0], gate);
  builder.binary(Kind::XNNMultiply, op.operands[0], gate, op.result);
  return {};
}

/// clamp(x + 3, 0, 6) / 6
Status emit_hardsigmoid(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  XnnId moved = builder.temporary(op.dtype, op.dims), limited = builder.temporary(op.dtype, op.dims);
  ARGOSY_TRY(XnnId three, builder.scalar(3, op.dtype));
  ARGOSY_TRY(XnnId sixth, builder.scalar(1.0 / 6, op.dtype));
  builder.binary(Kind::XNNAdd, op.operands[0], three, moved);
  builder.clamp(moved, limited, {0, 6});
  builder.binary(Kind::XNNMultiply, limited, sixth, op.result);
  return {};
}

bool supports_gelu(const NodeView& view) { return view["approximate"].is<std::string>(); }

/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) where it is not the exact one.
Status emit_gelu(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  XnnId x = op.operands[0];
  if (std::get<std::string>(view["approximate"].variant()) != "tanh") {
    builder.unary(Kind::XNNGelu, x, op.result);
    return {};
  }
  const double scale = std::sqrt(2 / 3.14159265358979323846);
  // x * (scale + scale * 0.044715 * x^2)
  ARGOSY_TRY(XnnId cubic, builder.scalar(scale * 0.044715, op.dtype));
  ARGOSY_TRY(XnnId linear, builder.scalar(scale, op.dtype));
  ARGOSY_TRY(XnnId one, builder.scalar(1, op.dtype));
  ARGOSY_TRY(XnnId half, builder.scalar(0.5, op.dtype));
  auto next = [&] { return builder.temporary(op.dtype, op.dims); };
  XnnId square = next(), scaled = next(), sum = next(), inner = next(), bent = next(), raised = next(), halved = next();
  builder.unary(Kind::XNNSquare, x, square);
  builder.binary(Kind::XNNMultiply, square, cubic, scaled);
  builder.binary(Kind::XNNAdd, scaled, linear, sum);
  builder.binary(Kind::XNNMultiply, sum, x, inner);
  builder.unary(Kind::XNNTanh, inner, bent);
  builder.binary(Kind::XNNAdd, bent, one, raised);
  builder.binary(Kind::XNNMultiply, x, half, halved);
  builder.binary(Kind::XNNMultiply, halved, raised, op.result);
  return {};
}

bool supports_leaky(const NodeView& view) { return view.number("negative_slope").has_value(); }

Status emit_leaky(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  auto slope = static_cast<float>(*view.number("negative_slope"));
  builder.node(Kind::XNNLeakyReLU,
               fb_xnnpack::CreateXNNLeakyReLU(builder.buffer(), slope, op.operands[0], op.result, 0));
  return {};
}

bool supports_elu(const NodeView& view) {
  return view.number("alpha") && view.number("scale") == 1.0 && view.number("input_scale") == 1.0;
}

Status emit_elu(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(Elementwise op, elementwise(view, builder, {*view.tensor("self")}));
  auto alpha = static_cast<float>(*view.number("alpha"));
  builder.node(Kind::XNNELU, fb_xnnpack::CreateXNNELU(builder.buffer(), alpha, op.operands[0], op.result, 0));
  return {};
}

// ---- others ----

bool supports_cast(const NodeView& view) {
  return computes_in(view.type(*view.tensor("self")).dtype) && computes_in(view.type(view.output()).dtype);
}

bool supports_softmax(const NodeView& view) {
  ValueId self = *view.tensor("self");
  return view.dim("dim", view.rank(self)) == view.rank(self) - 1;
}

Status emit_softmax(const NodeView& view, XnnpackBuilder& builder) {
  ARGOSY_TRY(XnnId input, builder.row_major(*view.tensor("self")));
  ARGOSY_TRY(XnnId output, builder.result(view.output()));
  builder.unary(Kind::XNNSoftmax, input, output);
  return {};
}

using enum Effort;

constexpr XnnpackOp kElementwiseOps[] = {
    {"aten._softmax.default", kHeavy, supports_softmax, emit_softmax},
    {"aten.abs.default", kComputes, always, emit_unary<Kind::XNNAbs>},
    {"aten.add.Scalar", kComputes, supports_scalar, emit_scalar<Kind::XNNAdd>},
    {"aten.add.Tensor", kComputes, supports_tensors, emit_binary<Kind::XNNAdd>},
    {"aten.ceil.default", kComputes, always, emit_unary<Kind::XNNCeiling>},
    {"aten.clamp.default", kComputes, supports_clamp, emit_clamp},
    {"aten.div.Scalar", kComputes, supports_scalar, emit_scalar<Kind::XNNDiv>},
    {"aten.div.Tensor", kComputes, supports_tensors, emit_binary<Kind::XNNDiv>},
    {"aten.elu.default", kComputes, supports_elu, emit_elu},
    {"aten.exp.default", kComputes, always, emit_unary<Kind::XNNExp>},
    {"aten.floor.default", kComputes, always, emit_unary<Kind::XNNFloor>},
    {"aten.gelu.default", kComputes, supports_gelu, emit_gelu},
    {"aten.hardsigmoid.default", kComputes, always, emit_hardsigmoid},
    {"aten.hardswish.default", kComputes, always, emit_unary<Kind::XNNHardswish>},
    {"aten.hardtanh.default", kComputes, supports_clamp, emit_clamp},
    {"aten.leaky_relu.default", kComputes, supports_leaky, emit_leaky},
    {"aten.log.default", kComputes, always, emit_unary<Kind::XNNLog>},
    {"aten.maximum.default", kComputes, supports_tensors, emit_binary<Kind::XNNMaximum>},
    {"aten.minimum.default", kComputes, supports_tensors, emit_binary<Kind::XNNMinimum>},
    {"aten.mul.Scalar", kComputes, supports_scalar, emit_scalar<Kind::XNNMultiply>},
    {"aten.mul.Tensor", kComputes, supports_tensors, emit_binary<Kind::XNNMultiply>},
    {"aten.neg.default", kComputes, always, emit_unary<Kind::XNNNegate>},
    {"aten.pow.Tensor_Scalar", kComputes, supports_power, emit_power},
    {"aten.reciprocal.default", kComputes, always, emit_reciprocal},
    {"aten.relu.default", kComputes, supports_clamp, emit_clamp},
    {"aten.relu6.default", kComputes, supports_clamp, emit_clamp},
    {"aten.rsqrt.default", kComputes, always, emit_unary<Kind::XNNReciprocalSquareRoot>},
    {"aten.rsub.Scalar", kComputes, supports_scalar, emit_scalar<Kind::XNNSubtract, true>},
    {"aten.sigmoid.default", kComputes, always, emit_unary<Kind::XNNSigmoid>},
    {"aten.silu.default", kComputes, always, emit_silu},
    {"aten.softmax.int", kHeavy, supports_softmax, emit_softmax},
    {"aten.sqrt.default", kComputes, always, emit_unary<Kind::XNNSquareRoot>},
    {"aten.sub.Scalar", kComputes, supports_scalar, emit_scalar<Kind::XNNSubtract>},
    {"aten.sub.Tensor", kComputes, supports_tensors, emit_binary<Kind::XNNSubtract>},
    {"aten.tanh.default", kComputes, always, emit_unary<Kind::XNNTanh>},
    {"aten.to.dtype", Effort::kMoves, supports_cast, emit_unary<Kind::XNNConvert>, true},
};

}  // namespace

std::span<const XnnpackOp> xnnpack_elementwise() { return kElementwiseOps; }

}  // namespace argosy::executorch
