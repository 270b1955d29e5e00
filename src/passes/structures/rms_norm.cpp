#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/structures/recognise.h"

// Models write this norm in many ways, and PyTorch has an op for it: what is recognised becomes that op. The same norm
// of what is left of x without its mean is a layer norm of x.

namespace argosy {
namespace {

/// Whether `mean` is one of x over its last dim, which stays.
bool is_mean_of(const AtenBuilder& f, const Node* mean, ValueId x) {
  if (mean == nullptr || AtenBuilder::operand(*mean, 0) != x) return false;
  std::optional<std::vector<int64_t>> dims = numbers(mean->arguments[1]);
  const bool* keeps_dim = mean->arguments[2].get_if<bool>();
  auto last = static_cast<int64_t>(f.rank(x)) - 1;
  return dims && dims->size() == 1 && ((*dims)[0] == last || (*dims)[0] == -1) && keeps_dim != nullptr && *keeps_dim &&
         f.dtype(mean->outputs[0]) == f.dtype(x);
}

/// Whether two tensors are one, or the same difference computed twice.
bool are_equal(const AtenBuilder& f, ValueId a, ValueId b) {
  if (a == b) return true;
  const Node *first = f.made_by(a, "aten.sub.Tensor"), *second = f.made_by(b, "aten.sub.Tensor");
  return first != nullptr && second != nullptr && first->arguments == second->arguments;
}

/// The number that is added to mean(x * x) over the last dim; nullopt: `sum` is something else.
std::optional<double> epsilon_of(const AtenBuilder& f, const Node* sum, ValueId x) {
  if (sum == nullptr) return std::nullopt;
  const Node* mean = f.made_by(sum, 0, "aten.mean.dim");
  const Node* square = f.made_by(mean, 0, "aten.mul.Tensor");
  if (square == nullptr || !are_equal(f, AtenBuilder::operand(*square, 0), x) ||
      !are_equal(f, AtenBuilder::operand(*square, 1), x) || !is_mean_of(f, mean, square->outputs[0]))
    return std::nullopt;
  const double* real = sum->arguments[1].get_if<double>();
  const auto* factor = sum->arguments[2].get_if<int64_t>();
  return real != nullptr && factor != nullptr && *factor == 1 ? std::optional(*real) : std::nullopt;
}

/// x before its mean was taken off; invalid: it was not.
ValueId before_mean(const AtenBuilder& f, ValueId tensor) {
  const Node* difference = f.made_by(tensor, "aten.sub.Tensor");
  if (!AtenBuilder::adds_as_is(difference)) return {};
  ValueId x = AtenBuilder::operand(*difference, 0);
  bool fits = f.shape(x) == f.shape(tensor) && is_mean_of(f, f.made_by(difference, 1, "aten.mean.dim"), x);
  return fits ? x : ValueId();
}

bool become_norm(AtenBuilder& f, std::string_view schema, ValueId x, std::optional<ValueId> weight, double eps) {
  std::optional<int64_t> width = f.size(x, -1).as_integer();
  if (!width) return false;
  std::vector<AtenBuilder::Named> arguments = {{"input", x}, {"normalized_shape", IntList{*width}}, {"eps", eps}};
  if (weight) arguments.emplace_back("weight", *weight);
  return f.replace(f.node(schema, std::move(arguments), f.dtype(x), f.shape(x)));
}

/// A norm of `x`, which may be a difference from a mean.
bool become_norm_of(AtenBuilder& f, ValueId x, double eps) {
  ValueId whole = before_mean(f, x);
  return whole.is_valid() ? become_norm(f, aten::kLayerNorm, whole, std::nullopt, eps)
                          : become_norm(f, aten::kRmsNorm, x, std::nullopt, eps);
}

/// A norm without weight and bias; null: something else.
const Node* bare_norm(const AtenBuilder& f, ValueId tensor) {
  const Node *rms = f.made_by(tensor, "aten.rms_norm.default"), *layer = f.made_by(tensor, "aten.layer_norm.default");
  const Node* norm = rms != nullptr ? rms : layer;
  if (norm == nullptr || !norm->arguments[2].is<None>() || (layer != nullptr && !layer->arguments[3].is<None>()))
    return nullptr;
  return f.graph()[tensor].uses.size() == 1 ? norm : nullptr;
}

/// x * rsqrt(mean(x * x) + eps).
bool recognise_product(AtenBuilder& f) {
  for (auto [tensor, other] : {std::pair("self", "other"), std::pair("other", "self")}) {
    const Node* root = f.made_by(f[other], "aten.rsqrt.default");
    if (auto eps = epsilon_of(f, f.made_by(root, 0, "aten.add.Scalar"), f[tensor]))
      return become_norm_of(f, f[tensor], *eps);
  }
  return false;
}

/// x / sqrt(mean(x * x) + eps).
bool recognise_quotient(AtenBuilder& f) {
  const Node* root = f.made_by(f["other"], "aten.sqrt.default");
  auto eps = epsilon_of(f, f.made_by(root, 0, "aten.add.Scalar"), f["self"]);
  return eps && become_norm_of(f, f["self"], *eps);
}

/// A norm without weight times a vector, perhaps rounded on the way from and back to what it was before the norm.
bool recognise_weight(AtenBuilder& f) {
  for (auto [tensor, other] : {std::pair("self", "other"), std::pair("other", "self")}) {
    ValueId weight = f[tensor], result = f[other];
    const Node* rounded = f.made_by(result, "aten.to.dtype");
    const Node* norm = bare_norm(f, rounded != nullptr ? AtenBuilder::operand(*rounded, 0) : result);
    if (norm == nullptr) continue;
    const bool is_layer_norm = f.made_by(norm->outputs[0], "aten.layer_norm.default") != nullptr;
    ValueId x = AtenBuilder::operand(*norm, 0);
    if (rounded != nullptr) {
      const Node* widened = f.made_by(x, "aten.to.dtype");
      if (widened == nullptr || f.graph()[result].uses.size() != 1) continue;
      x = AtenBuilder::operand(*widened, 0);
    }
    const double* eps = norm->arguments[is_layer_norm ? 4 : 3].get_if<double>();
    if (eps == nullptr || f.rank(weight) != 1 || f.size(weight, 0) != f.size(x, -1)) continue;
    if (f.dtype(weight) != f.dtype(x) || f.dtype(result) != f.dtype(x)) continue;
    return become_norm(f, is_layer_norm ? aten::kLayerNorm : aten::kRmsNorm, x, weight, *eps);
  }
  return false;
}

/// A norm over the last dim of a tensor whose other dims are in another order: the order is changed after it, where
/// rotary embeddings and attention do without (norms of queries and keys in Gemma 3).
bool order_after_norm(AtenBuilder& f) {
  const Node* permuted = f.made_by(f["input"], "aten.permute.default");
  std::optional<std::vector<int64_t>> order = permuted == nullptr ? std::nullopt : numbers(permuted->arguments[1]);
  const auto* dims = f.argument("normalized_shape").get_if<IntList>();
  std::optional<double> eps = f.number("eps");
  if (!order || dims == nullptr || dims->size() != 1 || !eps || f.dtype(f["input"]) != f.result().dtype) return false;
  if (order->back() != static_cast<int64_t>(order->size()) - 1) return false;
  ValueId x = AtenBuilder::operand(*permuted, 0);
  std::vector<AtenBuilder::Named> arguments = {
      {"input", x}, {"normalized_shape", *dims}, {"weight", f.argument("weight")}, {"eps", *eps}};
  ValueId norm = f.node(aten::kRmsNorm, std::move(arguments), f.dtype(x), f.shape(x));
  return f.replace(f.permute(norm, *order));
}

constexpr RewriteRule kRmsNormRules[] = {
    {.op = "aten.rms_norm.default", .name = "order-after-rms-norm", .apply = write<order_after_norm>},
    {.op = "aten.mul.Tensor", .name = "recognise-rms-norm", .apply = write<recognise_product>},
    {.op = "aten.div.Tensor", .name = "recognise-rms-norm", .apply = write<recognise_quotient>},
    {.op = "aten.mul.Tensor", .name = "recognise-rms-norm-weight", .apply = write<recognise_weight>},
};

}  // namespace

std::span<const RewriteRule> rms_norm_rules() { return kRmsNormRules; }

}  // namespace argosy
