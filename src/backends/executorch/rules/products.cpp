#include "backends/executorch/rules/families.h"
#include "backends/executorch/rules/formula.h"
#include "backends/executorch/rules/schemas.h"
#include "passes/aten_schemas.h"

namespace argosy::executorch {
namespace {

/// beta * self + alpha * (batch1 @ batch2)
bool decompose_baddbmm(Formula& f) {
  std::optional<double> beta = f.number("beta"), alpha = f.number("alpha");
  if (!beta || !alpha || kind_of(f.dtype(f["batch1"])) != DTypeKind::kFloat) return false;
  ValueId product = f.mul(f.matmul(f["batch1"], f["batch2"]), *alpha);
  return f.replace(*beta == 0 ? product : f.add(f.mul(f["self"], *beta), product));
}

bool decompose_bilinear(Formula& f) {
  ValueId left = f["input1"], right = f["input2"], weight = f["weight"];
  if (f.rank(left) != 2 || f.rank(right) != 2) return false;
  // [out, batch, in2] by a product over in1, then one row of each with the other input.
  ValueId partial = f.matmul(f.unsqueeze(left, 0), weight);
  ValueId sums = f.transpose(f.sum(f.mul(partial, right), {2}, false), 0, 1);
  if (f.has("bias")) sums = f.add(sums, f["bias"]);
  return f.replace(sums);
}

// ---- kernels ----

/// mm, or bmm over all dims but the last two made one.
ValueId multiply(Formula& f, ValueId a, ValueId b) {
  if (f.rank(b) == 2) {
    if (f.rank(a) == 2) {
      return f.node(schemas::kMm, {{"self", a}, {"mat2", b}}, f.dtype(a), {f.size(a, 0), f.size(b, 1)});
    }
    Sizes flat = {f.symbols().mul(Sizes(f.shape(a).begin(), f.shape(a).end() - 1)), f.size(a, -1)};
    Sizes result = f.shape(a);
    result.back() = f.size(b, 1);
    return f.reshape(multiply(f, f.reshape(a, flat), b), result, {a, b});
  }
  Sizes left(f.shape(a).begin(), f.shape(a).end() - 2), right(f.shape(b).begin(), f.shape(b).end() - 2);
  Sizes batch = f.broadcast(left, right);
  auto as_batch = [&](ValueId x) {
    Sizes wide = batch;
    wide.insert(wide.end(), f.shape(x).end() - 2, f.shape(x).end());
    x = f.expand(x, wide, {a, b});
    return f.reshape(x, {f.symbols().mul(batch), f.size(x, -2), f.size(x, -1)});
  };
  Sizes result = batch;
  result.push_back(f.size(a, -2));
  result.push_back(f.size(b, -1));
  ValueId x = as_batch(a), y = as_batch(b);
  ValueId product =
      f.node(schemas::kBmm, {{"self", x}, {"mat2", y}}, f.dtype(a), {f.size(x, 0), f.size(x, 1), f.size(y, 2)});
  return f.reshape(product, result, {a, b});
}

bool select_matmul(Formula& f) {
  ValueId a = f["self"], b = f["other"];
  DType dtype = f.match.result().dtype;
  if (f.rank(a) == 0 || f.rank(b) == 0) return false;
  a = f.cast(a, dtype);
  b = f.cast(b, dtype);
  bool is_row = f.rank(a) == 1, is_column = f.rank(b) == 1;
  if (is_row) a = f.unsqueeze(a, 0);
  if (is_column) b = f.unsqueeze(b, 1);
  ValueId product = multiply(f, a, b);
  if (is_column) product = f.squeeze(product, -1);
  if (is_row) product = f.squeeze(product, is_column ? -1 : -2);
  return f.replace(product);
}

/// The kernel wants at least a row, and one dtype.
bool select_linear(Formula& f) {
  ValueId input = f["input"], weight = f["weight"];
  DType dtype = f.match.result().dtype;
  if (f.rank(weight) == 1) {
    ValueId sums = f.sum(f.mul(input, weight), {-1}, false);
    return f.replace(f.has("bias") ? f.add(sums, f["bias"]) : sums);
  }
  bool has_one_dtype = f.dtype(input) == dtype && f.dtype(weight) == dtype &&
                       (!f.has("bias") || (f.dtype(f["bias"]) == dtype && f.rank(f["bias"]) == 1));
  if (f.rank(input) > 1 && has_one_dtype) return false;
  bool is_row = f.rank(input) == 1;
  input = f.cast(is_row ? f.unsqueeze(input, 0) : input, dtype);
  Sizes shape = f.shape(input);
  shape.back() = f.size(weight, 0);
  bool is_vector = f.has("bias") && f.rank(f["bias"]) == 1;
  Argument bias = is_vector ? Argument(f.cast(f["bias"], dtype)) : Argument(None{});
  ValueId result = f.node(
      schemas::kLinear, {{"input", input}, {"weight", f.cast(weight, dtype)}, {"bias", std::move(bias)}}, dtype, shape);
  if (is_row) result = f.squeeze(result, 0);
  if (f.has("bias") && !is_vector) result = f.add(result, f["bias"]);
  return f.replace(result);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.baddbmm.default", .name = "decompose-baddbmm", .apply = write<decompose_baddbmm>},
    {.op = "aten.bilinear.default", .name = "decompose-bilinear", .apply = write<decompose_bilinear>},
};

constexpr RewriteRule kKernelRules[] = {
    {.op = "aten.matmul.default", .name = "select-matmul", .apply = write<select_matmul>},
    {.op = "aten.linear.default", .name = "select-linear", .apply = write<select_linear>},
};

}  // namespace

std::span<const RewriteRule> product_rules() { return kRules; }
std::span<const RewriteRule> product_kernel_rules() { return kKernelRules; }

}  // namespace argosy::executorch
