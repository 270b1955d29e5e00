#include "backends/onnx/sum_and_norm.h"

#include <array>
#include <memory>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/rewrite_rules.h"

namespace argosy::onnx {
namespace {

/// The norm of a + b, and a + b.
constexpr std::string_view kSumAndNorm =
    "onnx::sum_and_norm(Tensor a, Tensor b, Tensor weight, float eps) -> (Tensor, Tensor)";
constexpr size_t kRank = 3;  // [batch, tokens, width], as the op takes them

Result<bool> join_sum_and_norm(RuleContext& context, const RewriteRule& rule) {
  return or_refused([&]() -> Result<bool> {
    AtenBuilder f(context, &rule);
    ValueId sum = f["input"];
    const argosy::Node* add = f.made_by(sum, "aten.add.Tensor");
    std::optional<double> eps = f.number("eps");
    if (add == nullptr || !eps || !f.has("weight") || f.rank(sum) != kRank) return false;
    const TensorType type = f.type(sum);
    const auto *a = add->arguments[0].get_if<ValueId>(), *b = add->arguments[1].get_if<ValueId>();
    if (a == nullptr || b == nullptr || !AtenBuilder::adds_as_is(add)) return false;
    if (type.dtype != DType::kF32 && type.dtype != DType::kF16) return false;
    // Made where the sum is, the op is there for all who read the sum; so its weight must be one of the graph's, or
    // that plus a number, which is computed again there.
    const argosy::Node* shifted = f.made_by(f["weight"], "aten.add.Scalar");
    ValueId weight = shifted == nullptr ? f["weight"] : AtenBuilder::operand(*shifted, 0);
    bool fits = f.graph()[weight].weight.is_valid() && f.rank(weight) == 1 && f.dtype(weight) == type.dtype &&
                f.size(weight, 0) == type.shape.back();
    for (ValueId part : {*a, *b}) fits = fits && f.dtype(part) == type.dtype && f.shape(part) == type.shape;
    if (!fits) return false;
    TensorType plain{type.dtype, type.shape, {}};
    context.rewriter.insert_before(f.graph()[sum].producer);
    if (shifted != nullptr) {
      const Argument number = shifted->arguments[1], alpha = shifted->arguments[2];
      weight = f.node(aten::kAddScalar, {{"self", weight}, {"other", number}, {"alpha", alpha}}, type.dtype,
                      f.shape(weight));
    }
    const std::vector<AtenBuilder::Named> arguments = {{"a", *a}, {"b", *b}, {"weight", weight}, {"eps", *eps}};
    std::vector<ValueId> results = f.nodes(kSumAndNorm, arguments, {plain, plain});
    context.rewriter.replace_uses(sum, results[1]);
    return f.replace(results[0]);
  });
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.rms_norm.default", .name = "join-sum-and-norm", .apply = join_sum_and_norm}};

}  // namespace

Pass join_sums_and_norms() {
  return apply_rules("join-sums-and-norms",
                     std::make_shared<RuleTable>(std::array{std::span<const RewriteRule>(kRules)}));
}

}  // namespace argosy::onnx
