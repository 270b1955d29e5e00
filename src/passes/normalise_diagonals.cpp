#include <algorithm>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// The diagonal of matrices, replaced: where row + offset is column, the new element of that row (or column, below the
/// main diagonal).
bool decompose_diagonal_scatter(AtenBuilder& f) {
  ValueId values = f["src"];
  const Sizes shape = f.result().shape;
  const size_t rank = shape.size();
  std::optional<size_t> row_dim = f.dim("dim1", rank), column_dim = f.dim("dim2", rank);
  std::optional<int64_t> offset = f.integer("offset");
  if (!row_dim || !column_dim || *row_dim == *column_dim || !offset || f.rank(values) + 1 != rank) return false;

  // The two dims go last, as they are in what is written.
  std::vector<int64_t> order, back(rank);
  for (size_t i = 0; i < rank; ++i) {
    if (i != *row_dim && i != *column_dim) order.push_back(static_cast<int64_t>(i));
  }
  order.insert(order.end(), {static_cast<int64_t>(*row_dim), static_cast<int64_t>(*column_dim)});
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  bool is_by_row = *offset >= 0;
  SymExpr wanted = shape[is_by_row ? *row_dim : *column_dim], length = f.size(values, -1);
  if (wanted != length) {
    std::optional<int64_t> missing = f.symbols().sub(wanted, length).as_integer();
    if (!missing || *missing < 0) return false;
    values = f.pad(values, {0, *missing});
  }
  ValueId matrices = f.permute(f["self"], order);
  ValueId rows = f.unsqueeze(f.arange(f.size(matrices, -2), DType::kI64, {matrices}), 1);
  ValueId columns = f.unsqueeze(f.arange(f.size(matrices, -1), DType::kI64, {matrices}), 0);
  ValueId mask = f.compare("eq", f.add_integer(rows, *offset), columns);
  ValueId written = f.where(mask, f.unsqueeze(values, is_by_row ? -1 : -2), matrices);
  return f.replace(f.permute(written, back));
}

constexpr RewriteRule kDiagonalsRules[] = {
    {.op = "aten.diagonal_scatter.default",
     .name = "decompose-diagonal-scatter",
     .apply = write<decompose_diagonal_scatter>},
};

}  // namespace

std::span<const RewriteRule> diagonal_rules() { return kDiagonalsRules; }

}  // namespace argosy
