#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

constexpr int64_t kEach = 0, kMean = 1;

/// The negative score of each row's class; rows of the ignored class count nothing.
bool replace_by_likelihood(AtenBuilder& f, ValueId scores) {
  ValueId target = f["target"];
  std::optional<int64_t> reduction = f.integer("reduction"), ignored = f.integer("ignore_index");
  if (!reduction || !ignored || f.rank(target) + 1 != f.rank(scores) || kind_of(f.dtype(target)) == DTypeKind::kFloat) {
    return false;
  }
  const DType dtype = f.dtype(scores);
  const int64_t classes = f.rank(scores) == 1 ? 0 : 1;
  target = f.cast(target, DType::kI64);
  ValueId counts = f.compare("ne", target, Argument(*ignored));
  ValueId own = f.where(counts, target, 0.0);
  Sizes picked = f.shape(scores);
  picked[static_cast<size_t>(classes)] = f.one();
  ValueId loss =
      f.node(aten::kGather, {{"self", scores}, {"dim", classes}, {"index", f.unsqueeze(own, classes)}}, dtype, picked);
  loss = f.neg(f.squeeze(loss, classes));
  ValueId weights = f.cast(counts, dtype);
  if (f.has("weight")) {
    ValueId each =
        f.node(aten::kIndexTensor, {{"self", f["weight"]}, {"indices", ValueList{own}}}, dtype, f.shape(own));
    weights = f.mul(each, weights);
  }
  // Not multiplied by 0: what is left out may be infinite.
  loss = f.where(counts, f.mul(loss, weights), 0.0);
  if (*reduction == kEach) return f.replace(loss);
  std::vector<int64_t> all = f.dims("", f.rank(loss));
  if (f.rank(loss) > 0) {
    loss = f.sum(loss, all, false);
    weights = f.sum(weights, all, false);
  }
  return f.replace(*reduction == kMean ? f.div(loss, weights) : loss);
}

bool decompose_nll_loss(AtenBuilder& f) { return replace_by_likelihood(f, f["self"]); }

/// Only for targets that are class numbers, not probabilities.
bool decompose_cross_entropy(AtenBuilder& f) {
  constexpr std::string_view kLogSoftmax = aten::kLogSoftmaxInt;
  ValueId x = f["self"];
  if (f.number("label_smoothing") != 0.0 || f.rank(x) == 0) return false;
  int64_t classes = f.rank(x) == 1 ? 0 : 1;
  return replace_by_likelihood(f, f.node(kLogSoftmax, {{"self", x}, {"dim", classes}}, f.dtype(x), f.shape(x)));
}

constexpr RewriteRule kLossesRules[] = {
    {.op = "aten.nll_loss_nd.default", .name = "decompose-likelihood", .apply = write<decompose_nll_loss>},
    {.op = "aten.cross_entropy_loss.default", .name = "decompose-likelihood", .apply = write<decompose_cross_entropy>},
};

}  // namespace

std::span<const RewriteRule> losses() { return kLossesRules; }

}  // namespace argosy::decompose
