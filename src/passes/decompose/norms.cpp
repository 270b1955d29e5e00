#include <cmath>
#include <limits>
#include <numeric>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// The last `count` dims.
std::vector<int64_t> last_dims(size_t count) {
  std::vector<int64_t> dims(count);
  std::iota(dims.begin(), dims.end(), -static_cast<int64_t>(count));
  return dims;
}

double smallest_step(DType dtype) {
  if (dtype == DType::kF64) return std::numeric_limits<double>::epsilon();
  if (dtype == DType::kF16) return 0.0009765625;
  if (dtype == DType::kBF16) return 0.0078125;
  return static_cast<double>(std::numeric_limits<float>::epsilon());
}

bool decompose_rms_norm(AtenBuilder& f) {
  ValueId x = f["input"];
  const auto* normalized = f.argument("normalized_shape").get_if<IntList>();
  if (normalized == nullptr || normalized->empty() || normalized->size() > f.rank(x)) return false;
  DType dtype = f.dtype(x), precise = bits_of(dtype) < 32 ? DType::kF32 : dtype;
  double eps = f.has("eps") ? f.number("eps").value_or(0) : smallest_step(precise);
  ValueId wide = f.cast(x, precise);
  ValueId mean = f.mean(f.mul(wide, wide), last_dims(normalized->size()), true);
  ValueId result = f.mul(wide, f.rsqrt(f.add(mean, eps)));
  if (f.has("weight")) result = f.mul(result, f.cast(f["weight"], precise));
  return f.replace(result);
}

/// A vector of one number per channel, in a shape that broadcasts over an image.
ValueId by_channel(AtenBuilder& f, ValueId vector, ValueId image) {
  Sizes shape(f.rank(image), f.one());
  shape[1] = f.size(vector, 0);
  return f.reshape(vector, shape);
}

/// What is the same for all pixels of a channel is computed first.
bool decompose_batch_norm(AtenBuilder& f) {
  ValueId x = f["input"];
  bool is_training = f.knows("training") && f.flag("training");
  if (f.rank(x) < 2 || is_training || !f.has("running_mean") || !f.has("running_var")) return false;
  DType dtype = f.dtype(x);
  ValueId mean = f.cast(f["running_mean"], dtype), variance = f.cast(f["running_var"], dtype);
  std::string_view eps_name = f.knows("eps") ? "eps" : "epsilon";
  ValueId factor = f.rsqrt(f.add(variance, f.number(eps_name).value_or(1e-5)));
  if (f.has("weight")) factor = f.mul(factor, f["weight"]);
  ValueId shift = f.neg(f.mul(mean, factor));
  if (f.has("bias")) shift = f.add(shift, f["bias"]);
  ValueId scaled = f.mul(x, by_channel(f, factor, x));
  ValueId result = f.add(scaled, by_channel(f, shift, x));
  if (f.output_count() == 1) return f.replace(result);
  ValueId none = f.full({f.integer(0)}, 0.0, dtype, {});
  return f.replace({result, none, none});
}

// ---- lengths of vectors ----

/// (sum |x|^order)^(1/order) over dims
ValueId vector_norm(AtenBuilder& f, ValueId x, double order, const std::vector<int64_t>& dims, bool keeps_dims) {
  if (f.rank(x) == 0 && order != 0) return f.abs(x);
  if (order == 2) return f.sqrt(f.sum(f.mul(x, x), dims, keeps_dims));
  if (order == 1) return f.sum(f.abs(x), dims, keeps_dims);
  if (std::isinf(order)) {
    std::string_view schema = order > 0 ? aten::kAmax : aten::kAmin;
    return f.node(schema, {{"self", f.abs(x)}, {"dim", to_list(dims)}, {"keepdim", keeps_dims}}, f.dtype(x),
                  f.reduced(x, dims, keeps_dims));
  }
  if (order == 0) return f.sum(f.cast(f.compare("ne", x, Argument(0.0)), f.dtype(x)), dims, keeps_dims);
  constexpr std::string_view kPow = aten::kPowTensorScalar;
  auto power = [&](ValueId base, double exponent) {
    return f.node(kPow, {{"self", base}, {"exponent", exponent}}, f.dtype(base), f.shape(base));
  };
  return power(f.sum(power(f.abs(x), order), dims, keeps_dims), 1 / order);
}

/// linalg_vector_norm, norm and linalg_norm of vectors.
bool decompose_vector_norm(AtenBuilder& f) {
  ValueId x = f["self"];
  DType dtype = f.result().dtype;
  std::string_view name = f.knows("p") ? "p" : "ord";
  double order = 2;
  if (f.has(name)) {
    if (f.argument(name).is<std::string>()) return false;
    std::optional<double> given = f.number(name);
    if (!given) return false;
    order = *given;
  }
  if (kind_of(dtype) != DTypeKind::kFloat || kind_of(f.dtype(x)) == DTypeKind::kComplex) return false;
  std::vector<int64_t> dims = f.dims("dim", f.rank(x));
  // With an order, linalg_norm over two dims is that of a matrix; without one all elements count.
  if (f.op() == "aten.linalg_norm.default" && f.has("ord") && dims.size() != 1) return false;
  return f.replace(vector_norm(f, f.cast(x, dtype), order, dims, f.flag("keepdim")));
}

/// v * g / |v|, the norm over all dims but one.
bool decompose_weight_norm(AtenBuilder& f) {
  ValueId v = f["v"];
  std::optional<int64_t> dim = f.integer("dim");
  if (!dim || *dim < -1 || *dim >= static_cast<int64_t>(f.rank(v))) return false;
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < static_cast<int64_t>(f.rank(v)); ++i) {
    if (i != *dim) dims.push_back(i);
  }
  return f.replace(f.mul(v, f.div(f["g"], vector_norm(f, v, 2, dims, true))));
}

bool decompose_cosine_similarity(AtenBuilder& f) {
  ValueId a = f["x1"], b = f["x2"];
  Sizes all = f.broadcast(f.shape(a), f.shape(b));
  if (f.rank(a) != all.size() || f.rank(b) != all.size()) return false;
  std::optional<size_t> dim = f.dim("dim", all.size());
  if (!dim || kind_of(f.dtype(a)) != DTypeKind::kFloat) return false;
  auto at = static_cast<int64_t>(*dim);
  double eps = f.number("eps").value_or(1e-8);
  auto unit = [&](ValueId x) { return f.div(x, f.clamp(vector_norm(f, x, 2, {at}, true), eps, std::nullopt)); };
  ValueId first = unit(a);
  return f.replace(f.sum(f.mul(first, unit(b)), {at}, false));
}

/// Distances of rows, one by one.
bool decompose_distance(AtenBuilder& f) {
  std::optional<double> order = f.number("p"), eps = f.number("eps");
  if (!order || !eps || (f.rank(f["x1"]) == 0 && f.rank(f["x2"]) == 0)) return false;
  ValueId difference = f.add(f.sub(f["x1"], f["x2"]), *eps);
  return f.replace(vector_norm(f, difference, *order, {-1}, f.flag("keepdim")));
}

/// Distances between all rows of two matrices.
bool decompose_cdist(AtenBuilder& f) {
  constexpr int64_t kFewRows = 25;  // up to here torch takes differences, beyond a product
  ValueId a = f["x1"], b = f["x2"];
  std::optional<double> order = f.number("p");
  if (!order || f.rank(a) < 2 || f.rank(b) < 2) return false;
  if (order == 2.0 &&
      std::max(f.size(a, -2).as_integer().value_or(0), f.size(b, -2).as_integer().value_or(0)) > kFewRows) {
    ValueId other = f.transpose(b, -2, -1);
    ValueId squares = f.sum(f.mul(a, a), {-1}, true);
    squares = f.add(squares, f.sum(f.mul(other, other), {-2}, true));
    return f.replace(f.sqrt(f.clamp(f.sub(squares, f.mul(f.matmul(a, other), 2.0)), 0.0, std::nullopt)));
  }
  ValueId rows = f.unsqueeze(a, -2);
  ValueId difference = f.sub(rows, f.unsqueeze(b, -3));
  return f.replace(vector_norm(f, difference, *order, {-1}, false));
}

constexpr RewriteRule kNormsRules[] = {
    {.op = "aten.rms_norm.default", .name = "decompose-rms-norm", .apply = write<decompose_rms_norm>},
    {.op = "aten.batch_norm.default", .name = "decompose-batch-norm", .apply = write<decompose_batch_norm>},
    {.op = "aten._native_batch_norm_legit_no_training.default",
     .name = "decompose-batch-norm",
     .apply = write<decompose_batch_norm>},
    {.op = "aten.linalg_vector_norm.default", .name = "decompose-norm", .apply = write<decompose_vector_norm>},
    {.op = "aten.linalg_norm.default", .name = "decompose-norm", .apply = write<decompose_vector_norm>},
    {.op = "aten.norm.Scalar", .name = "decompose-norm", .apply = write<decompose_vector_norm>},
    {.op = "aten.norm.ScalarOpt_dim", .name = "decompose-norm", .apply = write<decompose_vector_norm>},
    {.op = "aten._weight_norm.default", .name = "decompose-weight-norm", .apply = write<decompose_weight_norm>},
    {.op = "aten.cosine_similarity.default",
     .name = "decompose-cosine-similarity",
     .apply = write<decompose_cosine_similarity>},
    {.op = "aten.pairwise_distance.default", .name = "decompose-distance", .apply = write<decompose_distance>},
    {.op = "aten.cdist.default", .name = "decompose-cdist", .apply = write<decompose_cdist>},
    {.op = "aten._cdist_forward.default", .name = "decompose-cdist", .apply = write<decompose_cdist>},
};

}  // namespace

std::span<const RewriteRule> norms() { return kNormsRules; }

}  // namespace argosy::decompose
