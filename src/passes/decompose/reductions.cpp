#include <limits>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"
#include "passes/extremes.h"

namespace argosy::decompose {
namespace {

/// not any(not x)
bool decompose_all(AtenBuilder& f) {
  ValueId x = f["self"];
  ValueId is_false = f.logical_not(x);
  ValueId any;
  const Sizes shape = f.result().shape;
  if (f.has("dim")) {
    IntList dims = to_list(f.dims("dim", f.rank(x)));
    any = f.node(aten::kAnyDims, {{"self", is_false}, {"dim", dims}, {"keepdim", f.flag("keepdim")}}, DType::kBool,
                 shape);
  } else {
    any = f.node(aten::kAny, {{"self", is_false}}, DType::kBool, shape);
  }
  return f.replace(f.cast(f.logical_not(any), f.result().dtype));
}

bool decompose_count_nonzero(AtenBuilder& f) {
  ValueId x = f["self"];
  return f.replace(f.sum(f.cast(x, DType::kBool), f.dims("dim", f.rank(x)), false, DType::kI64));
}

/// The sum of the numbers over their count; what is all NaN stays NaN, as 0 / 0.
bool decompose_nanmean(AtenBuilder& f) {
  ValueId x = f.cast(f["self"], f.result().dtype);
  std::vector<int64_t> dims = f.dims("dim", f.rank(x));
  bool keeps = f.flag("keepdim");
  ValueId is_number = f.compare("eq", x, x);
  ValueId total = f.sum(f.where(is_number, x, 0.0), dims, keeps);
  // Half precision cannot count beyond 2048.
  ValueId count = f.sum(is_number, dims, keeps, DType::kI64);
  return f.replace(f.div(total, f.cast(count, f.dtype(x))));
}

// ---- variances over an unknown number of elements; all others are decomposed before ----

/// Another op with the arguments of the rule's node.
ValueId spread(AtenBuilder& f, std::string_view schema) {
  const TensorType result = f.result();
  return f.node(schema,
                {{"self", f["self"]},
                 {"dim", to_list(f.dims("dim", f.rank(f["self"])))},
                 {"correction", f.argument("correction")},
                 {"keepdim", f.flag("keepdim")}},
                result.dtype, result.shape);
}

bool decompose_std(AtenBuilder& f) { return f.replace(f.sqrt(spread(f, aten::kVarCorrection))); }

/// std_mean, var_mean
bool decompose_spread_and_mean(AtenBuilder& f) {
  ValueId x = f["self"], mean = f.mean(x, f.dims("dim", f.rank(x)), f.flag("keepdim"));
  return f.replace(
      {spread(f, f.op() == "aten.std_mean.correction" ? aten::kStdCorrection : aten::kVarCorrection), mean});
}

bool decompose_variance(AtenBuilder& f) {
  ValueId x = f["self"];
  DType dtype = f.dtype(x);
  std::optional<double> correction = f.has("correction") ? f.number("correction") : 1.0;
  if (!correction || kind_of(dtype) != DTypeKind::kFloat) return false;
  std::vector<int64_t> dims = f.dims("dim", f.rank(x));
  SymExpr count = f.one();
  for (int64_t dim : dims) count = f.symbols().mul(count, f.size(x, dim));
  ValueId distance = f.sub(x, f.mean(x, dims, true));
  ValueId divisor = f.add(f.scalar(f.as_argument(f.item(count, {x})), dtype), -*correction);
  ValueId total = f.sum(f.mul(distance, distance), dims, f.flag("keepdim"));
  return f.replace(f.div(total, f.clamp(divisor, 0.0, {})));
}

/// max + log(sum(exp(x - max))), where a maximum that is not finite is left out.
bool decompose_logsumexp(AtenBuilder& f) {
  ValueId x = f.cast(f["self"], f.result().dtype);
  std::vector<int64_t> dims = f.dims("dim", f.rank(x));
  ValueId high = f.amax(x, dims, true);
  ValueId is_infinite = f.compare("eq", f.abs(high), Argument(kInfinity));
  high = f.where(is_infinite, f.scalar(0.0, f.dtype(x)), high);
  ValueId total = f.log(f.sum(f.exp(f.sub(x, high)), dims, true));
  return f.replace(f.reshape(f.add(total, high), f.result().shape));
}

bool decompose_aminmax(AtenBuilder& f) {
  ValueId x = f["self"];
  std::vector<int64_t> dims = f.dims("dim", f.rank(x));
  bool keeps = f.flag("keepdim");
  ValueId results[2];
  for (size_t i = 0; i < 2; ++i) {
    results[i] = f.node(i == 0 ? aten::kAmin : aten::kAmax, {{"self", x}, {"dim", to_list(dims)}, {"keepdim", keeps}},
                        f.dtype(x), f.reduced(x, dims, keeps));
  }
  return f.replace({results[0], results[1]});
}

// ---- cumulative ops; memory grows with the square of the dim ----

/// Places along a dim, or pairs of them, so that they broadcast over the dims behind it.
ValueId before_dims(AtenBuilder& f, ValueId places, ValueId x, int64_t dim) {
  for (size_t i = static_cast<size_t>(dim) + 1; i < f.rank(x); ++i) places = f.unsqueeze(places, -1);
  return places;
}

/// [n, n, 1..]: whether the column counts for the result of the row.
ValueId up_to_each(AtenBuilder& f, ValueId x, int64_t dim) {
  ValueId places = f.arange(f.size(x, dim), DType::kI64, {x});
  return before_dims(f, f.compare("le", places, f.unsqueeze(places, 1)), x, dim);
}

/// [.., n, ..] to [.., n, n, ..]: row i has what counts for result i, and `rest` elsewhere.
ValueId all_up_to_each(AtenBuilder& f, ValueId x, int64_t dim, Argument rest) {
  ValueId counts = up_to_each(f, x, dim), elements = f.unsqueeze(x, dim);
  return f.where(counts, elements, f.scalar(std::move(rest), f.dtype(x)));
}

/// The argument `dim`; nullopt if the tensor has no dims.
std::optional<int64_t> dim_of(AtenBuilder& f) {
  std::optional<size_t> dim = f.dim("dim", f.rank(f["self"]));
  if (!dim || f.rank(f["self"]) == 0) return std::nullopt;
  return static_cast<int64_t>(*dim);
}

bool decompose_cumprod(AtenBuilder& f) {
  std::optional<int64_t> dim = dim_of(f);
  if (!dim) return false;
  ValueId x = f.cast(f["self"], f.result().dtype);
  ValueId factors = all_up_to_each(f, x, *dim, int64_t{1});
  return f.replace(f.node(aten::kProdDimInt, {{"self", factors}, {"dim", *dim + 1}}, f.dtype(x), f.shape(x)));
}

bool decompose_logcumsumexp(AtenBuilder& f) {
  std::optional<int64_t> dim = dim_of(f);
  if (!dim) return false;
  ValueId x = f["self"], summands = all_up_to_each(f, x, *dim, -kInfinity);
  return f.replace(f.node(aten::kLogsumexp, {{"self", summands}, {"dim", IntList{*dim + 1}}}, f.dtype(x), f.shape(x)));
}

/// cummax, cummin and where they are; of equal ones the last.
bool decompose_cumulative_extreme(AtenBuilder& f) {
  bool is_max = f.op() == "aten.cummax.default";
  ValueId x = f["self"];
  std::optional<int64_t> dim = dim_of(f);
  const DTypeKind kind = kind_of(f.dtype(x));
  if (!dim || (kind != DTypeKind::kFloat && kind != DTypeKind::kSigned)) return false;
  ValueId seen = all_up_to_each(f, x, *dim, extreme_of(f.dtype(x), !is_max));
  ValueId found =
      f.node(is_max ? aten::kAmax : aten::kAmin, {{"self", seen}, {"dim", IntList{*dim + 1}}}, f.dtype(x), f.shape(x));
  if (!f.is_used(1)) return f.replace({found, f.scalar(int64_t{0}, DType::kI64)});
  ValueId is_found = f.compare("eq", seen, f.unsqueeze(found, *dim + 1));
  if (kind_of(f.dtype(x)) == DTypeKind::kFloat) {
    is_found =
        f.binary(aten::kBitwiseOrTensor, is_found, f.node(aten::kIsnan, {{"self", seen}}, DType::kBool, f.shape(seen)));
  }
  is_found = f.bitwise_and(is_found, up_to_each(f, x, *dim));
  ValueId places = before_dims(f, f.arange(f.size(x, *dim), DType::kI64, {x}), x, *dim);
  ValueId last = f.amax(f.where(is_found, places, f.scalar(int64_t{-1}, DType::kI64)), {*dim + 1}, false);
  return f.replace({found, last});
}

/// The difference between each element and the one before it, `n` times.
bool decompose_diff(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<int64_t> times = f.integer("n");
  std::optional<size_t> dim = f.dim("dim", f.rank(x));
  if (!times || *times < 1 || !dim) return false;
  auto at = static_cast<int64_t>(*dim);
  std::vector<ValueId> parts;
  if (f.has("prepend")) parts.push_back(f.cast(f["prepend"], f.dtype(x)));
  parts.push_back(x);
  if (f.has("append")) parts.push_back(f.cast(f["append"], f.dtype(x)));
  x = f.cat(parts, at);
  for (int64_t i = 0; i < *times; ++i) {
    SymExpr fewer = f.symbols().sub(f.size(x, at), f.one());
    ValueId later = f.slice(x, at, 1, fewer), earlier = f.slice(x, at, 0, fewer);
    x = f.dtype(x) == DType::kBool ? f.binary(aten::kBitwiseXorTensor, later, earlier) : f.sub(later, earlier);
  }
  return f.replace(x);
}

constexpr RewriteRule kReductionsRules[] = {
    {.op = "aten.diff.default", .name = "decompose-diff", .apply = write<decompose_diff>},
    {.op = "aten.all.default", .name = "decompose-all", .apply = write<decompose_all>},
    {.op = "aten.all.dim", .name = "decompose-all", .apply = write<decompose_all>},
    {.op = "aten.all.dims", .name = "decompose-all", .apply = write<decompose_all>},
    {.op = "aten.count_nonzero.default", .name = "decompose-count", .apply = write<decompose_count_nonzero>},
    {.op = "aten.count_nonzero.dim_IntList", .name = "decompose-count", .apply = write<decompose_count_nonzero>},
    {.op = "aten.nanmean.default", .name = "decompose-nanmean", .apply = write<decompose_nanmean>},
    {.op = "aten.std.correction", .name = "decompose-std", .apply = write<decompose_std>},
    {.op = "aten.std_mean.correction", .name = "decompose-std", .apply = write<decompose_spread_and_mean>},
    {.op = "aten.var_mean.correction", .name = "decompose-variance", .apply = write<decompose_spread_and_mean>},
    {.op = "aten.var.correction", .name = "decompose-variance", .apply = write<decompose_variance>},
    {.op = "aten.logsumexp.default", .name = "decompose-logsumexp", .apply = write<decompose_logsumexp>},
    {.op = "aten.aminmax.default", .name = "decompose-aminmax", .apply = write<decompose_aminmax>},
    {.op = "aten.cumprod.default", .name = "decompose-cumulative", .apply = write<decompose_cumprod>},
    {.op = "aten.logcumsumexp.default", .name = "decompose-cumulative", .apply = write<decompose_logcumsumexp>},
    {.op = "aten.cummax.default", .name = "decompose-cumulative", .apply = write<decompose_cumulative_extreme>},
    {.op = "aten.cummin.default", .name = "decompose-cumulative", .apply = write<decompose_cumulative_extreme>},
};

}  // namespace

std::span<const RewriteRule> reductions() { return kReductionsRules; }

}  // namespace argosy::decompose
