#include <algorithm>

#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// ---- variance ----

struct Reduction {
  std::vector<int64_t> dims;  // counted from the front
  bool keeps_dims = false;
  Argument correction = int64_t{1};
};

struct VarianceRow {
  std::string_view prefix;
  std::string_view schema;
};

constexpr VarianceRow kVariances[] = {
    {"aten.std.",
     "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"},
    {"aten.std_mean.",
     "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
     "(Tensor, Tensor)"},
    {"aten.var.",
     "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"},
    {"aten.var_mean.",
     "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
     "(Tensor, Tensor)"},
};

std::optional<Reduction> reduction_of(const Match& match, size_t rank) {
  Reduction reduction;
  if (match.has("dim") && !match["dim"].is<None>()) {
    std::optional<std::vector<int64_t>> dims = numbers(match["dim"]);
    if (!dims) return std::nullopt;
    for (int64_t dim : *dims) {
      std::optional<size_t> index = wrap_dim(dim, rank);
      if (!index) return std::nullopt;
      reduction.dims.push_back(static_cast<int64_t>(*index));
    }
    std::ranges::sort(reduction.dims);
  }
  if (reduction.dims.empty()) {
    for (size_t i = 0; i < rank; ++i) reduction.dims.push_back(static_cast<int64_t>(i));
  }
  if (match.has("keepdim")) {
    const bool* keeps = match["keepdim"].get_if<bool>();
    reduction.keeps_dims = keeps != nullptr && *keeps;
  }
  if (match.has("unbiased")) {
    const bool* is_unbiased = match["unbiased"].get_if<bool>();
    reduction.correction = int64_t{is_unbiased == nullptr || *is_unbiased ? 1 : 0};
  } else if (match.has("correction") && !match["correction"].is<None>()) {
    reduction.correction = match["correction"];
  }
  return reduction;
}

/// A variance over a number of elements that is not known stays whole, in the most general form.
Result<bool> normalise_variance(Match& match, const Reduction& reduction) {
  std::string_view name = match.schema().name;
  if (name.ends_with(".correction")) return false;
  std::vector<TensorType> types;
  for (size_t i = 0; i < match.output_count(); ++i) types.push_back(match.result(i));
  const VarianceRow* row =
      std::ranges::find_if(kVariances, [&](const VarianceRow& each) { return name.starts_with(each.prefix); });
  if (row == std::end(kVariances)) return false;
  ARGOSY_TRY(std::vector<ValueId> results, match.emit.several(row->schema,
                                                              {{"self", match.tensor("self")},
                                                               {"dim", to_list(reduction.dims)},
                                                               {"correction", reduction.correction},
                                                               {"keepdim", reduction.keeps_dims}},
                                                              types));
  return match.replace(results);
}

/// The mean of squared distances to the mean, with what was asked for in the place of the number of elements.
Result<bool> decompose_variance(RuleContext& context, const RewriteRule&) {
  Match match(context);
  Emitter& emit = match.emit;
  ValueId self = match.tensor("self");
  const TensorType type = emit.type(self), result = match.result();
  std::optional<Reduction> reduction = reduction_of(match, type.shape.size());
  if (!reduction || kind_of(type.dtype) != DTypeKind::kFloat) return false;
  SymExpr count = emit.number(1);
  TensorType kept{type.dtype, type.shape, {}};
  for (int64_t dim : reduction->dims) {
    count = emit.symbols().mul(count, type.shape[static_cast<size_t>(dim)]);
    kept.shape[static_cast<size_t>(dim)] = emit.number(1);
  }
  const double* real = reduction->correction.get_if<double>();
  const int64_t* whole = reduction->correction.get_if<int64_t>();
  std::optional<int64_t> elements = count.as_integer();
  if ((real == nullptr && whole == nullptr) || (!elements && (whole == nullptr || *whole != 0))) {
    return normalise_variance(match, *reduction);
  }
  double correction = real != nullptr ? *real : static_cast<double>(*whole);

  IntList dims = to_list(reduction->dims);
  ARGOSY_TRY(ValueId mean, emit(aten::kMeanDim, {{"self", self}, {"dim", dims}, {"keepdim", true}}, kept));
  TensorType whole_type{type.dtype, type.shape, {}};
  ARGOSY_TRY(ValueId distance, emit(aten::kSubTensor, {{"self", self}, {"other", mean}}, whole_type));
  ARGOSY_TRY(ValueId square, emit(aten::kMulTensor, {{"self", distance}, {"other", distance}}, whole_type));
  ValueId variance;
  if (correction == 0) {
    ARGOSY_TRY(variance,
               emit(aten::kMeanDim, {{"self", square}, {"dim", dims}, {"keepdim", reduction->keeps_dims}}, result));
  } else {
    double divisor = std::max(0.0, static_cast<double>(*elements) - correction);
    ARGOSY_TRY(variance,
               emit(aten::kSumDim, {{"self", square}, {"dim", dims}, {"keepdim", reduction->keeps_dims}}, result));
    ARGOSY_TRY(variance, emit(aten::kDivScalar, {{"self", variance}, {"other", divisor}}, result));
  }
  if (match.schema().name.starts_with("aten.std")) {
    ARGOSY_TRY(variance, emit(aten::kSqrt, {{"self", variance}}, result));
  }
  if (match.output_count() == 1) return match.replace(variance);
  if (!reduction->keeps_dims) {
    ARGOSY_TRY(mean, emit(aten::kSqueeze, {{"self", mean}, {"dim", dims}}, match.result(1)));
  }
  return match.replace({variance, mean});
}

// ---- products ----

Result<bool> decompose_outer(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  if (result.shape.size() != 2) return false;
  SymExpr one = match.emit.number(1);
  ARGOSY_TRY(ValueId column, match.emit(aten::kUnsqueeze, {{"self", match.tensor("self")}, {"dim", int64_t{1}}},
                                        TensorType{result.dtype, {result.shape[0], one}, {}}));
  ARGOSY_TRY(ValueId row, match.emit(aten::kUnsqueeze, {{"self", match.tensor("vec2")}, {"dim", int64_t{0}}},
                                     TensorType{result.dtype, {one, result.shape[1]}, {}}));
  ARGOSY_TRY(ValueId product, match.emit(aten::kMulTensor, {{"self", column}, {"other", row}}, result));
  return match.replace(product);
}

/// One half, weighed by the sigmoid of the other.
Result<bool> decompose_glu(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  std::optional<size_t> dim = match.dim("dim", result.shape.size());
  std::optional<int64_t> half = dim ? result.shape[*dim].as_integer() : std::nullopt;
  if (!half) return false;
  ARGOSY_TRY(std::vector<ValueId> halves, match.emit.several(aten::kSplitWithSizes,
                                                             {{"self", match.tensor("self")},
                                                              {"split_sizes", IntList{*half, *half}},
                                                              {"dim", static_cast<int64_t>(*dim)}},
                                                             {result, result}));
  ARGOSY_TRY(ValueId gate, match.emit(aten::kSigmoid, {{"self", halves[1]}}, result));
  ARGOSY_TRY(ValueId product, match.emit(aten::kMulTensor, {{"self", halves[0]}, {"other", gate}}, result));
  return match.replace(product);
}

// ---- convolutions ----

struct ConvolutionRow {
  std::string_view schema;  // with padding as numbers
};

constexpr ConvolutionRow kConv1d = {
    "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
    "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor"};
constexpr ConvolutionRow kConv2d = {
    "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
    "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor"};
constexpr ConvolutionRow kConv3d = {
    "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, "
    "0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor"};

/// Padding by name: "valid" is none, "same" is what keeps the sizes; where that is odd, one more behind.
Result<bool> normalise_padding(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  ValueId input = match.tensor("input");
  const std::vector<SymExpr> kernel = match.emit.type(match.tensor("weight")).shape;
  if (kernel.size() < 3 || match.emit.type(input).shape.size() + 1 < kernel.size()) return false;
  const size_t dims = kernel.size() - 2;
  const auto* mode = match["padding"].get_if<std::string>();
  std::optional<std::vector<int64_t>> dilation = numbers(match["dilation"]);
  if (mode == nullptr || !dilation || (dilation->size() != dims && dilation->size() != 1)) return false;
  std::vector<int64_t> padding(dims, 0), behind(dims, 0);
  for (size_t i = 0; i < dims && *mode == "same"; ++i) {
    std::optional<int64_t> size = kernel[i + 2].as_integer();
    if (!size) return false;
    int64_t total = (*dilation)[dilation->size() == 1 ? 0 : i] * (*size - 1);
    padding[i] = total / 2;
    behind[i] = total % 2;
  }
  if (std::ranges::any_of(behind, [](int64_t count) { return count > 0; })) {
    TensorType type = match.emit.type(input);
    type.strides.clear();
    std::vector<int64_t> pad;
    for (size_t i = dims; i-- > 0;) {
      pad.insert(pad.end(), {0, behind[i]});
      SymExpr& size = type.shape[type.shape.size() - dims + i];
      size = match.emit.symbols().add(size, match.emit.number(behind[i]));
    }
    ARGOSY_TRY(input, match.emit(aten::kConstantPad, {{"self", input}, {"pad", to_list(pad)}}, type));
  }
  ARGOSY_TRY(ValueId result, match.emit(static_cast<const ConvolutionRow*>(rule.user_data)->schema,
                                        {{"input", input},
                                         {"weight", match["weight"]},
                                         {"bias", match["bias"]},
                                         {"stride", match["stride"]},
                                         {"padding", to_list(padding)},
                                         {"dilation", match["dilation"]},
                                         {"groups", match["groups"]}},
                                        match.result()));
  return match.replace(result);
}

/// Padding with a number.
Result<bool> normalise_pad(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const auto* mode = match["mode"].get_if<std::string>();
  if (mode == nullptr || *mode != "constant") return false;
  Argument value = match["value"].is<None>() ? Argument(int64_t{0}) : match["value"];
  ARGOSY_TRY(ValueId result,
             match.emit(aten::kConstantPad, {{"self", match.tensor("self")}, {"pad", match["pad"]}, {"value", value}},
                        match.result()));
  return match.replace(result);
}

// ---- order ----

Result<bool> decompose_argsort(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  TensorType values{match.emit.type(self).dtype, match.result().shape, {}};
  std::vector<Emitter::Named> arguments = {{"self", self}, {"dim", match["dim"]}, {"descending", match["descending"]}};
  if (match.has("stable")) arguments.emplace_back("stable", match["stable"]);
  ARGOSY_TRY(std::vector<ValueId> sorted, match.emit.several(match.has("stable") ? aten::kSortStable : aten::kSort,
                                                             std::move(arguments), {values, match.result()}));
  return match.replace(sorted[1]);
}

// ---- softmax of decomposed graphs ----

constexpr std::string_view kSoftmax = "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
constexpr std::string_view kLogSoftmax =
    "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";

Result<bool> normalise_softmax(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  ValueId self = match.tensor("self");
  Argument dtype = match.result().dtype == match.emit.type(self).dtype ? Argument(None{}) : match.result().dtype;
  auto schema = *static_cast<const std::string_view*>(rule.user_data);
  ARGOSY_TRY(ValueId result,
             match.emit(schema, {{"self", self}, {"dim", match["dim"]}, {"dtype", std::move(dtype)}}, match.result()));
  return match.replace(result);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.std.correction", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.std.default", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.std.dim", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.std_mean.correction", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.std_mean.default", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.std_mean.dim", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.var.correction", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.var.default", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.var.dim", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.var_mean.correction", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.var_mean.default", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.var_mean.dim", .name = "decompose-variance", .apply = decompose_variance},
    {.op = "aten.outer.default", .name = "decompose-outer", .apply = decompose_outer},
    {.op = "aten.glu.default", .name = "decompose-glu", .apply = decompose_glu},
    {.op = "aten.conv1d.padding", .name = "normalise-padding", .apply = normalise_padding, .user_data = &kConv1d},
    {.op = "aten.conv2d.padding", .name = "normalise-padding", .apply = normalise_padding, .user_data = &kConv2d},
    {.op = "aten.conv3d.padding", .name = "normalise-padding", .apply = normalise_padding, .user_data = &kConv3d},
    {.op = "aten.pad.default", .name = "normalise-pad", .apply = normalise_pad},
    {.op = "aten.argsort.default", .name = "decompose-argsort", .apply = decompose_argsort},
    {.op = "aten.argsort.stable", .name = "decompose-argsort", .apply = decompose_argsort},
    {.op = "aten._softmax.default", .name = "normalise-softmax", .apply = normalise_softmax, .user_data = &kSoftmax},
    {.op = "aten._log_softmax.default",
     .name = "normalise-softmax",
     .apply = normalise_softmax,
     .user_data = &kLogSoftmax},
};

}  // namespace

std::span<const RewriteRule> composite_rules() { return kRules; }

}  // namespace argosy
