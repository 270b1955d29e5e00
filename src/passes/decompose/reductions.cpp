#include <limits>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

constexpr std::string_view kAnyDims = "aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor";
constexpr std::string_view kProd = "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor";

std::vector<int64_t> all_dims(AtenBuilder& f, ValueId x) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < f.rank(x); ++i) dims.push_back(static_cast<int64_t>(i));
  return dims;
}

bool decompose_sum(AtenBuilder& f) {
  ValueId x = f["self"];
  return f.replace(f.sum(x, all_dims(f, x), false, f.result().dtype));
}

bool decompose_mean(AtenBuilder& f) {
  ValueId x = f.cast(f["self"], f.result().dtype);
  return f.replace(f.mean(x, all_dims(f, x), false));
}

/// Over the dims of a tensor that has none: kernels count on some.
bool reduce_nothing(AtenBuilder& f) {
  ValueId x = f["self"];
  if (f.rank(x) != 0) return false;
  if (f.output_count() == 2) return f.replace({x, f.scalar(int64_t{0}, DType::kI64)});
  const std::string& name = f.op();
  if (name.starts_with("aten.arg")) return f.replace(f.scalar(int64_t{0}, DType::kI64));
  return f.replace(x);
}

/// All are true if none is not.
bool decompose_all(AtenBuilder& f) {
  ValueId x = f["self"];
  ValueId is_false = f.logical_not(x);
  ValueId any;
  const Sizes shape = f.result().shape;
  if (f.knows("dim") && f.has("dim")) {
    std::vector<int64_t> dims = f.dims("dim", f.rank(x));
    any = f.rank(x) == 0
              ? is_false
              : f.node(kAnyDims, {{"self", is_false}, {"dim", to_list(dims)}, {"keepdim", f.flag("keepdim")}},
                       DType::kBool, shape);
  } else {
    any = f.rank(x) == 0 ? is_false : f.node(aten::kAny, {{"self", is_false}}, DType::kBool, shape);
  }
  return f.replace(f.cast(f.logical_not(any), f.result().dtype));
}

bool decompose_count_nonzero(AtenBuilder& f) {
  ValueId x = f["self"];
  ValueId counted = f.dtype(x) == DType::kBool ? x : f.compare("ne", x, Argument(int64_t{0}));
  return f.replace(f.sum(counted, f.dims("dim", f.rank(x)), false, DType::kI64));
}

bool decompose_std(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType result = f.result();
  ValueId variance = f.node(aten::kVar,
                            {{"self", x},
                             {"dim", to_list(f.dims("dim", f.rank(x)))},
                             {"correction", f.argument("correction")},
                             {"keepdim", f.flag("keepdim")}},
                            result.dtype, result.shape);
  return f.replace(f.sqrt(variance));
}

/// max + log(sum(exp(x - max))), where a maximum that is not finite is left out.
bool decompose_logsumexp(AtenBuilder& f) {
  ValueId x = f.cast(f["self"], f.result().dtype);
  std::vector<int64_t> dims = f.dims("dim", f.rank(x));
  double infinity = std::numeric_limits<double>::infinity();
  ValueId high = f.amax(x, dims, true);
  high = f.where(f.compare("eq", f.abs(high), Argument(infinity)), f.scalar(0.0, f.dtype(x)), high);
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

bool decompose_prod_default(AtenBuilder& f) {
  ValueId x = f["self"];
  DType dtype = f.result().dtype;
  if (f.dtype(x) == dtype && !f.has("dtype")) return false;
  return f.replace(f.node(kProd, {{"self", f.cast(x, dtype)}}, dtype, {}));
}

bool decompose_distance(AtenBuilder& f) {
  ValueId difference = f.add(f.sub(f["x1"], f["x2"]), f.number("eps").value_or(1e-6));
  if (f.number("p") != 2.0 || f.rank(difference) == 0) return false;
  return f.replace(f.sqrt(f.sum(f.mul(difference, difference), {-1}, f.flag("keepdim"))));
}

/// Distances between all rows of two matrices.
bool decompose_cdist(AtenBuilder& f) {
  ValueId a = f["x1"], b = f["x2"];
  std::optional<double> order = f.number("p");
  if (order != 2.0 || f.rank(a) < 2 || f.rank(b) < 2) return false;
  ValueId difference = f.sub(f.unsqueeze(a, -2), f.unsqueeze(b, -3));
  return f.replace(f.sqrt(f.sum(f.mul(difference, difference), {-1}, false)));
}

/// softmax with a dtype of its own casts first.
bool cast_softmax(AtenBuilder& f) {
  ValueId x = f["self"];
  DType dtype = f.result().dtype;
  if (!f.has("dtype") && f.dtype(x) == dtype) return false;
  std::string schema = f.schema().text;
  return f.replace(f.node(schema, {{"self", f.cast(x, dtype)}, {"dim", f.argument("dim")}}, dtype, f.shape(x)));
}

/// The product of all up to each, as a product over a triangle.
bool decompose_cumprod(AtenBuilder& f) {
  ValueId x = f.cast(f["self"], f.result().dtype);
  std::optional<size_t> dim = f.dim("dim", f.rank(x));
  if (!dim || f.rank(x) == 0) return false;
  constexpr std::string_view kProdDim =
      "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
  SymExpr size = f.size(x, static_cast<int64_t>(*dim));
  // [.., n, ..] to [.., n, n, ..]: row i has the factors of result i.
  auto at = static_cast<int64_t>(*dim);
  ValueId rows = f.unsqueeze(f.arange(size, DType::kI64, {x}), 1), columns = f.arange(size, DType::kI64, {x});
  ValueId is_factor = f.compare("le", columns, rows);
  for (size_t i = *dim + 1; i < f.rank(x); ++i) is_factor = f.unsqueeze(is_factor, -1);
  ValueId factors = f.where(is_factor, f.unsqueeze(x, at), 1.0);
  return f.replace(f.node(kProdDim, {{"self", factors}, {"dim", at + 1}}, f.dtype(x), f.result().shape));
}

/// What each element has more than the one before it, `n` times.
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
    x = f.dtype(x) == DType::kBool ? f.binary(aten::kBitwiseXor, later, earlier) : f.sub(later, earlier);
  }
  return f.replace(x);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.diff.default", .name = "decompose-diff", .apply = write<decompose_diff>},
    {.op = "aten.sum.dim_IntList", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.mean.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.amax.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.amin.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.any.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.any.dims", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.max.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.min.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.argmax.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.argmin.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.prod.dim_int", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.cumsum.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.sum.default", .name = "decompose-sum", .apply = write<decompose_sum>},
    {.op = "aten.mean.default", .name = "decompose-mean", .apply = write<decompose_mean>},
    {.op = "aten.all.default", .name = "decompose-all", .apply = write<decompose_all>},
    {.op = "aten.all.dim", .name = "decompose-all", .apply = write<decompose_all>},
    {.op = "aten.all.dims", .name = "decompose-all", .apply = write<decompose_all>},
    {.op = "aten.count_nonzero.default", .name = "decompose-count", .apply = write<decompose_count_nonzero>},
    {.op = "aten.count_nonzero.dim_IntList", .name = "decompose-count", .apply = write<decompose_count_nonzero>},
    {.op = "aten.std.correction", .name = "decompose-std", .apply = write<decompose_std>},
    {.op = "aten.logsumexp.default", .name = "decompose-logsumexp", .apply = write<decompose_logsumexp>},
    {.op = "aten.aminmax.default", .name = "decompose-aminmax", .apply = write<decompose_aminmax>},
    {.op = "aten.prod.default", .name = "cast-product", .apply = write<decompose_prod_default>},
    {.op = "aten.pairwise_distance.default", .name = "decompose-distance", .apply = write<decompose_distance>},
    {.op = "aten.cdist.default", .name = "decompose-cdist", .apply = write<decompose_cdist>},
    {.op = "aten._cdist_forward.default", .name = "decompose-cdist", .apply = write<decompose_cdist>},
    {.op = "aten.softmax.int", .name = "cast-softmax", .apply = write<cast_softmax>},
    {.op = "aten.log_softmax.int", .name = "cast-softmax", .apply = write<cast_softmax>},
    {.op = "aten.cumprod.default", .name = "decompose-cumprod", .apply = write<decompose_cumprod>},
};

}  // namespace

std::span<const RewriteRule> reductions() { return kRules; }

}  // namespace argosy::decompose
