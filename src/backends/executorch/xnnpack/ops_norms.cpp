#include "backends/executorch/xnnpack/builder.h"

namespace argosy::executorch {
namespace {

using Kind = XnnpackBuilder::Kind;

// XNNPACK has no node that reduces the last dim, but a layer of one output whose weights are all 1 / n does the same,
// whatever the dims before; its bias adds what a norm adds.

/// The mean of the last dim, kept as 1, plus `offset`.
Result<XnnId> mean_of_rows(XnnpackBuilder& builder, XnnId input, DType dtype, std::vector<uint32_t> dims, double scale,
                           double offset) {
  std::vector<uint32_t> filter = {1, dims.back()}, one = {1};
  ARGOSY_TRY(XnnId weights, builder.packed_row(scale, dtype, filter));
  XnnId bias = kNoXnn;
  if (offset != 0) {
    ARGOSY_TRY(bias, builder.packed_row(offset, dtype, one));
  }
  dims.back() = 1;
  XnnId output = builder.temporary(dtype, dims);
  builder.fully_connected(input, weights, bias, output);
  return output;
}

bool is_last_static(const NodeView& view, ValueId value) {
  size_t rank = view.rank(value);
  return rank >= 1 && view.size(value, rank - 1).has_value();
}

// ---- reductions ----

bool supports_row_reduction(const NodeView& view) {
  ValueId self = *view.tensor("self");
  std::optional<std::vector<int64_t>> dims = view.integers("dim");
  if (!dims || dims->size() != 1 || !is_last_static(view, self)) return false;
  auto rank = static_cast<int64_t>(view.rank(self));
  return ((*dims)[0] == -1 || (*dims)[0] == rank - 1) &&
         (view.boolean("keepdim") == true || (rank > 1 && view.dynamic_dims(view.output()) <= 1));
}

Status emit_row_reduction(const NodeView& view, XnnpackBuilder& builder, bool is_mean) {
  ValueId self = *view.tensor("self"), result = view.output();
  ARGOSY_TRY(XnnId input, builder.row_major(self));
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(self));
  DType dtype = view.type(self).dtype;
  std::vector<uint32_t> filter = {1, dims.back()};
  ARGOSY_TRY(XnnId weights, builder.packed_row(is_mean ? 1.0 / dims.back() : 1.0, dtype, filter));
  if (view.boolean("keepdim") == true) {
    ARGOSY_TRY(XnnId output, builder.result(result));
    builder.fully_connected(input, weights, kNoXnn, output);
    return {};
  }
  dims.back() = 1;
  XnnId kept = builder.temporary(dtype, dims);
  builder.fully_connected(input, weights, kNoXnn, kept);
  std::vector<uint32_t> shape;
  for (size_t i = 0; i < view.rank(result); ++i) {
    shape.push_back(static_cast<uint32_t>(view.size(result, i).value_or(0)));
  }
  ARGOSY_TRY(XnnId output, builder.result(result));
  builder.reshape(kept, output, shape);
  return {};
}

/// Over height and width, kept as 1: XNNPACK has a node for this.
bool is_spatial(const NodeView& view) {
  std::optional<std::vector<int64_t>> dims = view.integers("dim");
  if (!dims || dims->size() != 2 || view.rank(*view.tensor("self")) != 4) return false;
  int64_t a = ((*dims)[0] + 4) % 4, b = ((*dims)[1] + 4) % 4;
  return view.boolean("keepdim") == true && a + b == 5 && (a == 2 || a == 3);
}

bool supports_mean(const NodeView& view) {
  return view["dtype"].is<None>() && (is_spatial(view) || supports_row_reduction(view));
}

Status emit_mean(const NodeView& view, XnnpackBuilder& builder) {
  if (!is_spatial(view)) return emit_row_reduction(view, builder, true);
  ARGOSY_TRY(XnnId input, builder.channels_last(*view.tensor("self")));
  ARGOSY_TRY(XnnId output, builder.result_channels_last(view.output()));
  builder.unary(Kind::XNNGlobalAvgPooling2d, input, output, kKeepDims);
  return {};
}

bool supports_sum(const NodeView& view) { return view["dtype"].is<None>() && supports_row_reduction(view); }

Status emit_sum(const NodeView& view, XnnpackBuilder& builder) { return emit_row_reduction(view, builder, false); }

// ---- norms ----

bool is_fit_norm(const NodeView& view) {
  ValueId input = *view.tensor("input");
  std::optional<std::vector<int64_t>> shape = view.integers("normalized_shape");
  if (!shape || shape->size() != 1 || !is_last_static(view, input)) return false;
  for (std::string_view argument : {"weight", "bias"}) {
    std::optional<ValueId> value = view.has(argument) ? view.tensor(argument) : std::nullopt;
    if (value && !view.is_constant(*value)) return false;
  }
  return true;
}

// Squares leave the range of f16, so norms are f32 whatever their type is.

/// The operand in f32.
Result<XnnId> widened(const NodeView& view, XnnpackBuilder& builder, ValueId value) {
  ARGOSY_TRY(XnnId input, builder.row_major(value));
  if (view.type(value).dtype == DType::kF32) return input;
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(value));
  XnnId wide = builder.temporary(DType::kF32, dims);
  builder.unary(Kind::XNNConvert, input, wide);
  return wide;
}

/// Weight or bias in f32.
Result<XnnId> widened_constant(const NodeView& view, XnnpackBuilder& builder, ValueId value) {
  const Weight& weight = view.program()[view.graph()[value].weight];
  ARGOSY_TRY(TensorSourcePtr source, converted(weight.source, DType::kF32));
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(value));
  return builder.constant(weight.name, std::move(source), dims);
}

bool supports_layer_norm(const NodeView& view) {
  bool has_others = false;
  for (size_t i = 1; i < view.node().outputs.size(); ++i) {
    has_others = has_others || !view.graph()[view.output(i)].uses.empty();
  }
  return is_fit_norm(view) && view.number("eps") && !has_others;
}

bool supports_rms_norm(const NodeView& view) {
  return is_fit_norm(view) && (view.number("eps") || view["eps"].is<None>());
}

/// Divides by the root of the mean square, then weight and bias.
Status finish_norm(const NodeView& view, XnnpackBuilder& builder, XnnId centred, const std::vector<uint32_t>& dims,
                   double eps) {
  DType dtype = DType::kF32;
  XnnId squares = builder.temporary(dtype, dims);
  builder.unary(Kind::XNNSquare, centred, squares);
  ARGOSY_TRY(XnnId variance, mean_of_rows(builder, squares, dtype, dims, 1.0 / dims.back(), eps));
  std::vector<uint32_t> rows = dims;
  rows.back() = 1;
  XnnId factor = builder.temporary(dtype, rows);
  builder.unary(Kind::XNNReciprocalSquareRoot, variance, factor);
  std::optional<ValueId> weight = view.tensor("weight");
  std::optional<ValueId> bias = view.has("bias") ? view.tensor("bias") : std::nullopt;
  XnnId last = centred;
  bool is_narrow = view.type(view.output()).dtype != dtype;
  auto step = [&](Kind kind, XnnId other, bool is_last) -> Status {
    XnnId next = kNoXnn;
    if (is_last && !is_narrow) {
      ARGOSY_TRY(next, builder.result(view.output()));
    } else {
      next = builder.temporary(dtype, dims);
    }
    builder.binary(kind, last, other, next);
    last = next;
    if (is_last && is_narrow) {
      ARGOSY_TRY(XnnId result, builder.result(view.output()));
      builder.unary(Kind::XNNConvert, last, result);
    }
    return {};
  };
  ARGOSY_TRY_STATUS(step(Kind::XNNMultiply, factor, !weight && !bias));
  if (weight) {
    ARGOSY_TRY(XnnId id, widened_constant(view, builder, *weight));
    ARGOSY_TRY_STATUS(step(Kind::XNNMultiply, id, !bias));
  }
  if (bias) {
    ARGOSY_TRY(XnnId id, widened_constant(view, builder, *bias));
    ARGOSY_TRY_STATUS(step(Kind::XNNAdd, id, true));
  }
  return {};
}

Status emit_layer_norm(const NodeView& view, XnnpackBuilder& builder) {
  ValueId value = *view.tensor("input");
  ARGOSY_TRY(XnnId input, widened(view, builder, value));
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(value));
  ARGOSY_TRY(XnnId mean, mean_of_rows(builder, input, DType::kF32, dims, 1.0 / dims.back(), 0));
  XnnId centred = builder.temporary(DType::kF32, dims);
  builder.binary(Kind::XNNSubtract, input, mean, centred);
  return finish_norm(view, builder, centred, dims, *view.number("eps"));
}

Status emit_rms_norm(const NodeView& view, XnnpackBuilder& builder) {
  ValueId value = *view.tensor("input");
  ARGOSY_TRY(XnnId input, widened(view, builder, value));
  ARGOSY_TRY(std::vector<uint32_t> dims, builder.dims(value));
  constexpr double kEpsilon = 1.1920928955078125e-07;
  return finish_norm(view, builder, input, dims, view.number("eps").value_or(kEpsilon));
}

using enum Effort;

constexpr XnnpackOp kNormsOps[] = {
    {"aten.layer_norm.default", kHeavy, supports_layer_norm, emit_layer_norm},
    {"aten.mean.dim", kHeavy, supports_mean, emit_mean},
    {"aten.native_layer_norm.default", kHeavy, supports_layer_norm, emit_layer_norm},
    {"aten.rms_norm.default", kHeavy, supports_rms_norm, emit_rms_norm},
    {"aten.sum.dim_IntList", kHeavy, supports_sum, emit_sum},
};

}  // namespace

std::span<const XnnpackOp> xnnpack_norms() { return kNormsOps; }

}  // namespace argosy::executorch
