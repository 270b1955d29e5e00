#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "io/json.h"
#include "ir/program.h"

namespace argosy {

/// Writes types of values as the graph JSON has them. Expressions get the value they had in the trace, where the
/// component knows that of all their symbols.
class Pt2TypeWriter {
 public:
  explicit Pt2TypeWriter(const Component& component);

  Status tensor(JsonWriter& json, const TensorType& type, bool requires_grad);
  void number(JsonWriter& json, const SymType& type);
  /// Sizes and strides that are numbers already.
  Status tensor(JsonWriter& json, DType dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                bool requires_grad);

 private:
  void size(JsonWriter& json, SymExpr expression);
  void expression(JsonWriter& json, SymExpr expression);
  void device(JsonWriter& json) const;

  SymContext& symbols_;
  std::string device_;
  std::map<std::string, int64_t, std::less<>> hints_;
  std::map<std::string, double> float_hints_;  // by srepr
  struct Written {
    std::string srepr;
    std::optional<int64_t> hint;
  };
  std::unordered_map<const void*, Written> written_;  // by identity of the expression
  int unknown_ = 0;                                   // numbers of which no expression is known
};

/// Row-major strides of a shape.
std::vector<SymExpr> contiguous_strides(SymContext& symbols, const std::vector<SymExpr>& shape);

}  // namespace argosy
