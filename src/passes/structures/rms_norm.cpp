#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/structures/recognise.h"

// Models write this norm in many ways, and PyTorch has an op for it: what is recognised becomes that op.

namespace argosy {
namespace {

/// The number that is added to mean(x * x) over the last dim; nullopt: `sum` is something else.
std::optional<double> epsilon_of(const AtenBuilder& f, const Node* sum, ValueId x) {
  if (sum == nullptr) return std::nullopt;
  const Node* mean = f.made_by(sum, 0, "aten.mean.dim");
  const Node* square = f.made_by(mean, 0, "aten.mul.Tensor");
  if (square == nullptr || AtenBuilder::operand(*square, 0) != x || AtenBuilder::operand(*square, 1) != x)
    return std::nullopt;
  std::optional<std::vector<int64_t>> dims = numbers(mean->arguments[1]);
  const bool* keeps_dim = mean->arguments[2].get_if<bool>();
  auto last = static_cast<int64_t>(f.rank(x)) - 1;
  bool is_last = dims && dims->size() == 1 && ((*dims)[0] == last || (*dims)[0] == -1);
  if (!is_last || keeps_dim == nullptr || !*keeps_dim || f.dtype(mean->outputs[0]) != f.dtype(x)) return std::nullopt;
  const double* real = sum->arguments[1].get_if<double>();
  const auto* factor = sum->arguments[2].get_if<int64_t>();
  return real != nullptr && factor != nullptr && *factor == 1 ? std::optional(*real) : std::nullopt;
}

bool become_norm(AtenBuilder& f, ValueId x, std::optional<ValueId> weight, double eps) {
  std::optional<int64_t> width = f.size(x, -1).as_integer();
  if (!width) return false;
  std::vector<AtenBuilder::Named> arguments = {{"input", x}, {"normalized_shape", IntList{*width}}, {"eps", eps}};
  if (weight) arguments.emplace_back("weight", *weight);
  return f.replace(f.node(aten::kRmsNorm, std::move(arguments), f.dtype(x), f.shape(x)));
}

/// x * rsqrt(mean(x * x) + eps).
bool recognise_product(AtenBuilder& f) {
  for (auto [tensor, other] : {std::pair("self", "other"), std::pair("other", "self")}) {
    const Node* root = f.made_by(f[other], "aten.rsqrt.default");
    if (auto eps = epsilon_of(f, f.made_by(root, 0, "aten.add.Scalar"), f[tensor]))
      return become_norm(f, f[tensor], std::nullopt, *eps);
  }
  return false;
}

/// x / sqrt(mean(x * x) + eps).
bool recognise_quotient(AtenBuilder& f) {
  const Node* root = f.made_by(f["other"], "aten.sqrt.default");
  auto eps = epsilon_of(f, f.made_by(root, 0, "aten.add.Scalar"), f["self"]);
  return eps && become_norm(f, f["self"], std::nullopt, *eps);
}

/// A norm without weight times a vector, perhaps rounded on the way from and back to what it was before the norm.
bool recognise_weight(AtenBuilder& f) {
  for (auto [tensor, other] : {std::pair("self", "other"), std::pair("other", "self")}) {
    ValueId weight = f[tensor], result = f[other];
    const Node* rounded = f.made_by(result, "aten.to.dtype");
    const Node* norm = rounded != nullptr ? f.made_by(rounded, 0, "aten.rms_norm.default")
                                          : f.made_by(result, "aten.rms_norm.default");
    if (norm == nullptr || !norm->arguments[2].is<None>() || f.graph()[norm->outputs[0]].uses.size() != 1) continue;
    ValueId x = AtenBuilder::operand(*norm, 0);
    if (rounded != nullptr) {
      const Node* widened = f.made_by(x, "aten.to.dtype");
      if (widened == nullptr || f.graph()[result].uses.size() != 1) continue;
      x = AtenBuilder::operand(*widened, 0);
    }
    const double* eps = norm->arguments[3].get_if<double>();
    if (eps == nullptr || f.rank(weight) != 1 || f.size(weight, 0) != f.size(x, -1)) continue;
    if (f.dtype(weight) != f.dtype(x) || f.dtype(result) != f.dtype(x)) continue;
    return become_norm(f, x, weight, *eps);
  }
  return false;
}

constexpr RewriteRule kRmsNormRules[] = {
    {.op = "aten.mul.Tensor", .name = "recognise-rms-norm", .apply = write<recognise_product>},
    {.op = "aten.div.Tensor", .name = "recognise-rms-norm", .apply = write<recognise_quotient>},
    {.op = "aten.mul.Tensor", .name = "recognise-rms-norm-weight", .apply = write<recognise_weight>},
};

}  // namespace

std::span<const RewriteRule> rms_norm_rules() { return kRmsNormRules; }

}  // namespace argosy
