#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// Rows are sorted by expert, expert i's end at offs[i]. There is no kernel that takes rows by groups: every expert
/// multiplies all rows, and each row keeps the product of its own. Rows behind the last expert's are zero.
bool decompose_grouped_mm(AtenBuilder& f) {
  bool is_plain = f.op() == "aten._grouped_mm.default";
  ValueId rows = f[is_plain ? "self" : "input"], weight = f[is_plain ? "mat2" : "weight"];
  if (is_plain && (!f.has("offs") || f.has("bias"))) return false;
  ValueId ends = f.cast(f["offs"], DType::kI64);
  if (f.rank(rows) != 2 || f.rank(weight) != 3 || f.rank(ends) != 1) return false;
  std::optional<int64_t> experts = f.size(weight, 0).as_integer();
  if (!experts) return false;
  SymExpr count = f.size(rows, 0);

  ValueId products = f.matmul(f.unsqueeze(rows, 0), weight);
  ValueId places = f.arange(count, DType::kI64, {rows});
  // How many experts' rows end before a row is the number of its own expert.
  ValueId expert = f.sum(f.compare("le", ends, f.unsqueeze(places, 1)), {1}, false, DType::kI64);
  ValueId is_used = f.unsqueeze(f.compare("lt", expert, Argument(*experts)), 1);
  expert = f.clamp(expert, std::nullopt, static_cast<double>(*experts - 1));
  ValueId own = f.node(aten::kIndexTensor, {{"self", products}, {"indices", ValueList{expert, places}}},
                       f.dtype(products), {count, f.size(weight, 2)});
  return f.replace(f.where(is_used, own, 0.0));
}

constexpr RewriteRule kRules[] = {
    {.op = "transformers.grouped_mm_fallback.default",
     .name = "decompose-grouped-mm",
     .apply = write<decompose_grouped_mm>},
    {.op = "aten._grouped_mm.default", .name = "decompose-grouped-mm", .apply = write<decompose_grouped_mm>},
};

}  // namespace

std::span<const RewriteRule> experts() { return kRules; }

}  // namespace argosy::decompose
