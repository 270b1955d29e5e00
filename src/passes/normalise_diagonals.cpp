#include <algorithm>

#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

constexpr std::string_view kWhere = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor";

/// Numbers of the rows (dim 0) or columns (dim 1) of a matrix, as a column or a row.
Result<ValueId> numbers_of(Emitter& emit, ValueId matrices, size_t dim, bool is_column) {
  SymExpr count = emit.type(matrices).shape[dim], one = emit.number(1);
  ARGOSY_TRY(IntItem size, emit.size(matrices, static_cast<int64_t>(dim)));
  Argument end = std::visit([](auto item) { return Argument(item); }, size);
  ARGOSY_TRY(ValueId range,
             emit(aten::kArange,
                  {{"start", int64_t{0}}, {"end", std::move(end)}, {"step", int64_t{1}}, {"dtype", DType::kI64}},
                  TensorType{DType::kI64, {count}, {}}));
  TensorType type{DType::kI64, {one, count}, {}};
  if (is_column) type.shape = {count, one};
  return emit(aten::kUnsqueeze, {{"self", range}, {"dim", int64_t{is_column ? 1 : 0}}}, type);
}

Result<ValueId> permuted(Emitter& emit, ValueId tensor, const std::vector<int64_t>& order) {
  if (std::ranges::is_sorted(order)) return tensor;
  TensorType type{emit.type(tensor).dtype, {}, {}};
  for (int64_t dim : order) type.shape.push_back(emit.type(tensor).shape[static_cast<size_t>(dim)]);
  return emit(aten::kPermute, {{"self", tensor}, {"dims", to_list(order)}}, type);
}

/// The diagonal of matrices, replaced: where row + offset is column, the new element of that row (or column, below the
/// main diagonal).
Result<bool> decompose_diagonal_scatter(RuleContext& context, const RewriteRule&) {
  Match match(context);
  Emitter& emit = match.emit;
  const TensorType result = match.result();
  const size_t rank = result.shape.size();
  std::optional<size_t> row_dim = match.dim("dim1", rank), column_dim = match.dim("dim2", rank);
  std::optional<int64_t> offset = match.integer("offset");
  ValueId values = match.tensor("src");
  if (!row_dim || !column_dim || *row_dim == *column_dim || !offset) return false;
  if (emit.type(values).shape.size() + 1 != rank) return false;

  // The two dims go last, as they are in what is written.
  std::vector<int64_t> order, back(rank);
  for (size_t i = 0; i < rank; ++i) {
    if (i != *row_dim && i != *column_dim) order.push_back(static_cast<int64_t>(i));
  }
  order.insert(order.end(), {static_cast<int64_t>(*row_dim), static_cast<int64_t>(*column_dim)});
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  bool is_by_row = *offset >= 0;
  SymExpr wanted = result.shape[is_by_row ? *row_dim : *column_dim], length = emit.type(values).shape.back();
  if (wanted != length) {
    std::optional<int64_t> missing = emit.symbols().sub(wanted, length).as_integer();
    if (!missing || *missing < 0) return false;
    TensorType type{result.dtype, emit.type(values).shape, {}};
    type.shape.back() = wanted;
    ARGOSY_TRY(values, emit(aten::kConstantPad, {{"self", values}, {"pad", IntList{int64_t{0}, *missing}}}, type));
  }
  ARGOSY_TRY(ValueId matrices, permuted(emit, match.tensor("self"), order));
  const TensorType type{result.dtype, emit.type(matrices).shape, {}};
  ARGOSY_TRY(ValueId rows, numbers_of(emit, matrices, rank - 2, true));
  ARGOSY_TRY(ValueId columns, numbers_of(emit, matrices, rank - 1, false));
  if (*offset != 0) {
    TensorType rows_type = emit.type(rows);
    ARGOSY_TRY(rows, emit(aten::kAddScalar, {{"self", rows}, {"other", *offset}}, std::move(rows_type)));
  }
  TensorType mask_type{DType::kBool, {type.shape[rank - 2], type.shape[rank - 1]}, {}};
  ARGOSY_TRY(ValueId mask, emit(aten::kEqTensor, {{"self", rows}, {"other", columns}}, mask_type));
  TensorType wide{result.dtype, emit.type(values).shape, {}};
  auto dim = static_cast<int64_t>(is_by_row ? rank - 1 : rank - 2);
  wide.shape.insert(wide.shape.begin() + dim, emit.number(1));
  ARGOSY_TRY(values, emit(aten::kUnsqueeze, {{"self", values}, {"dim", dim}}, wide));
  ARGOSY_TRY(ValueId written, emit(kWhere, {{"condition", mask}, {"self", values}, {"other", matrices}}, type));
  ARGOSY_TRY(written, permuted(emit, written, back));
  return match.replace(written);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.diagonal_scatter.default", .name = "decompose-diagonal-scatter", .apply = decompose_diagonal_scatter},
};

}  // namespace

std::span<const RewriteRule> diagonal_rules() { return kRules; }

}  // namespace argosy
