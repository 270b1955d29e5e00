#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// Over the dims of a tensor that has none: it is its own sum, product, largest element and so on.
bool reduce_nothing(AtenBuilder& f) {
  ValueId x = f["self"];
  if (f.rank(x) != 0) return false;
  if (f.op().starts_with("aten.arg")) return f.replace(f.scalar(int64_t{0}, DType::kI64));
  if (f.output_count() == 1) return f.replace(x);
  return f.replace({x, f.op() == "aten.aminmax.default" ? x : f.scalar(int64_t{0}, DType::kI64)});
}

/// Over all dims: they are named.
bool name_dims(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType result = f.result();
  IntList dims = to_list(f.dims("dim", f.rank(x)));
  if (f.op() == "aten.sum.default") {
    Argument dtype = f.dtype(x) == result.dtype ? Argument(None{}) : Argument(result.dtype);
    return f.replace(f.node(aten::kSumDimIntList, {{"self", x}, {"dim", dims}, {"dtype", dtype}}, result.dtype, {}));
  }
  if (f.op() == "aten.mean.default") x = f.cast(x, result.dtype);
  std::string_view schema = f.op() == "aten.mean.default"  ? aten::kMeanDim
                            : f.op() == "aten.max.default" ? aten::kAmax
                                                           : aten::kAmin;
  return f.replace(f.node(schema, {{"self", x}, {"dim", dims}}, result.dtype, {}));
}

bool name_all_dims(AtenBuilder& f) {
  size_t rank = f.rank(f["self"]);
  std::optional<std::vector<int64_t>> given = numbers(f.argument("dim"));
  if (rank == 0 || (f.has("dim") && (!given || !given->empty()))) return false;
  return f.replace(f.repeated({{"dim", to_list(f.dims("dim", rank))}}));
}

/// A product in another dtype: the operand is cast first.
bool cast_product(AtenBuilder& f) {
  DType dtype = f.result().dtype;
  if (f.dtype(f["self"]) == dtype && !f.has("dtype")) return false;
  return f.replace(f.repeated({{"self", f.cast(f["self"], dtype)}, {"dtype", None{}}}));
}

/// softmax, log_softmax: without a dtype of its own, and over a dim that the tensor has.
bool normalise_softmax(AtenBuilder& f) {
  ValueId x = f["self"];
  DType dtype = f.result().dtype;
  bool lacks_dims = f.rank(x) == 0;
  if (!f.has("dtype") && f.dtype(x) == dtype && !lacks_dims) return false;
  x = f.cast(x, dtype);
  if (lacks_dims) x = f.unsqueeze(x, 0);
  Argument dim = lacks_dims ? Argument(int64_t{0}) : f.argument("dim");
  x = f.node(f.schema().text, {{"self", x}, {"dim", std::move(dim)}}, dtype, f.shape(x));
  return f.replace(lacks_dims ? f.squeeze(x, 0) : x);
}

/// A batch norm by the statistics of its own batch.
bool decompose_batch_norm(AtenBuilder& f) {
  ValueId x = f["input"];
  if (f.has("running_mean") || f.has("running_var") || f.rank(x) < 2) return false;
  std::vector<int64_t> dims = {0};
  for (size_t i = 2; i < f.rank(x); ++i) dims.push_back(static_cast<int64_t>(i));
  auto by_channel = [&](std::string_view name) {
    Sizes shape(f.rank(x), f.one());
    shape[1] = f.size(x, 1);
    return f.reshape(f[name], std::move(shape));
  };
  ValueId distance = f.sub(x, f.mean(x, dims, true));
  ValueId variance = f.mean(f.mul(distance, distance), dims, true);
  ValueId result = f.mul(distance, f.rsqrt(f.add(variance, f.number("eps").value_or(1e-5))));
  if (f.has("weight")) result = f.mul(result, by_channel("weight"));
  if (f.has("bias")) result = f.add(result, by_channel("bias"));
  return f.replace(result);
}

constexpr RewriteRule kReductionsRules[] = {
    {.op = "aten.sum.default", .name = "name-dims", .apply = write<name_dims>},
    {.op = "aten.mean.default", .name = "name-dims", .apply = write<name_dims>},
    {.op = "aten.max.default", .name = "name-dims", .apply = write<name_dims>},
    {.op = "aten.min.default", .name = "name-dims", .apply = write<name_dims>},
    {.op = "aten.sum.dim_IntList", .name = "name-dims", .apply = write<name_all_dims>},
    {.op = "aten.mean.dim", .name = "name-dims", .apply = write<name_all_dims>},
    {.op = "aten.amax.default", .name = "name-dims", .apply = write<name_all_dims>},
    {.op = "aten.amin.default", .name = "name-dims", .apply = write<name_all_dims>},
    {.op = "aten.sum.dim_IntList", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.mean.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.prod.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.prod.dim_int", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.amax.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.amin.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.aminmax.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.max.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.min.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.argmax.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.argmin.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.any.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.any.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.any.dims", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.all.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.all.dim", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.all.dims", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.logsumexp.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.cumsum.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.cumprod.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.logcumsumexp.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.cummax.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.cummin.default", .name = "reduce-nothing", .apply = write<reduce_nothing>},
    {.op = "aten.prod.default", .name = "cast-product", .apply = write<cast_product>},
    {.op = "aten.softmax.int", .name = "normalise-softmax", .apply = write<normalise_softmax>},
    {.op = "aten.log_softmax.int", .name = "normalise-softmax", .apply = write<normalise_softmax>},
    {.op = "aten.batch_norm.default", .name = "decompose-batch-norm", .apply = write<decompose_batch_norm>},
};

}  // namespace

std::span<const RewriteRule> reduction_rules() { return kReductionsRules; }

}  // namespace argosy
