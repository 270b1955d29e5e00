#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// beta * self + alpha * (batch1 @ batch2). If beta is 0, self is ignored, even NaN.
bool decompose_added_product(AtenBuilder& f) {
  std::optional<double> beta = f.number("beta"), alpha = f.number("alpha");
  if (!beta || !alpha) return false;
  bool is_batched = f.knows("batch1");
  ValueId a = f[is_batched ? "batch1" : "mat1"], b = f[is_batched ? "batch2" : "mat2"];
  auto scaled = [&](ValueId x, double by) {
    return kind_of(f.dtype(x)) == DTypeKind::kFloat ? f.mul(x, by) : f.mul_integer(x, static_cast<int64_t>(by));
  };
  ValueId product = scaled(f.matmul(a, b), *alpha);
  return f.replace(*beta == 0 ? product : f.add(scaled(f["self"], *beta), product));
}

bool decompose_bilinear(AtenBuilder& f) {
  ValueId left = f["input1"], right = f["input2"], weight = f["weight"];
  if (f.rank(left) != 2 || f.rank(right) != 2) return false;
  // [out, batch, in2] by a product over in1, then one row of each with the other input.
  ValueId partial = f.matmul(f.unsqueeze(left, 0), weight);
  ValueId sums = f.transpose(f.sum(f.mul(partial, right), {2}, false), 0, 1);
  if (f.has("bias")) sums = f.add(sums, f["bias"]);
  return f.replace(sums);
}

constexpr RewriteRule kProductsRules[] = {
    {.op = "aten.addmm.default", .name = "decompose-added-product", .apply = write<decompose_added_product>},
    {.op = "aten.baddbmm.default", .name = "decompose-added-product", .apply = write<decompose_added_product>},
    {.op = "aten.bilinear.default", .name = "decompose-bilinear", .apply = write<decompose_bilinear>},
};

}  // namespace

std::span<const RewriteRule> products() { return kProductsRules; }

}  // namespace argosy::decompose
