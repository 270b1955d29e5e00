#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// beta * self + alpha * (batch1 @ batch2)
bool decompose_baddbmm(AtenBuilder& f) {
  std::optional<double> beta = f.number("beta"), alpha = f.number("alpha");
  if (!beta || !alpha || kind_of(f.dtype(f["batch1"])) != DTypeKind::kFloat) return false;
  ValueId product = f.mul(f.matmul(f["batch1"], f["batch2"]), *alpha);
  return f.replace(*beta == 0 ? product : f.add(f.mul(f["self"], *beta), product));
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

constexpr RewriteRule kRules[] = {
    {.op = "aten.baddbmm.default", .name = "decompose-baddbmm", .apply = write<decompose_baddbmm>},
    {.op = "aten.bilinear.default", .name = "decompose-bilinear", .apply = write<decompose_bilinear>},
};

}  // namespace

std::span<const RewriteRule> products() { return kRules; }

}  // namespace argosy::decompose
