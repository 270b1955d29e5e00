#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "frontends/pt2/json_field.h"
#include "ir/graph.h"
#include "tensor/sym.h"

namespace argosy {

/// Tensors of more dims are refused.
inline constexpr size_t kMaxRank = 64;

/// Reads the types of values: TensorMeta, SymInt, SymFloat and SymBool of the graph JSON. Texts of expressions are
/// parsed once; a symbol gets its range when it is first met, so that comparisons fold as they can.
class TypeReader {
 public:
  /// `ranges` are those of range_constraints, by symbol.
  TypeReader(SymContext& symbols, const std::map<std::string, SymRange, std::less<>>& ranges)
      : symbols_(symbols), ranges_(ranges) {}

  Result<TensorType> tensor(const JsonField& meta);
  Result<SymType> number(SymType::Kind kind, const JsonField& value);
  /// A SymInt: {"as_int": 3} or {"as_expr": {...}}.
  Result<SymExpr> size(const JsonField& value);

  /// The value that each symbol had in the trace, where it says so: "s72" -> 2.
  const std::map<std::string, int64_t>& hints() const { return hints_; }
  /// The value that each expression of a float had, by its srepr text.
  const std::map<std::string, double>& float_hints() const { return float_hints_; }

 private:
  Result<SymExpr> expression(const JsonField& as_expr);
  void set_ranges_in(std::string_view srepr);
  void drop_contiguous_strides(TensorType& type);

  SymContext& symbols_;
  const std::map<std::string, SymRange, std::less<>>& ranges_;
  std::unordered_map<std::string_view, SymExpr> parsed_;  // keys point into the JSON document
  std::map<std::string, bool, std::less<>> met_;
  std::map<std::string, int64_t> hints_;
  std::map<std::string, double> float_hints_;
};

/// Whether strides are those of a row-major tensor of that shape; dims of size 1 may have any. Compares canonical
/// forms, so "false" may also mean that it depends on the symbols.
bool is_row_major(SymContext& symbols, const std::vector<SymExpr>& shape, const std::vector<SymExpr>& strides);

}  // namespace argosy
