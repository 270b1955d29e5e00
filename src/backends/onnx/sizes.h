#pragma once

#include <bit>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backends/onnx/builder.h"
#include "tensor/sym.h"

namespace argosy::onnx {

/// Sizes as values of the model: i64 tensors of shape [1]. Each expression is computed once, from the dims of inputs
/// and of tensors whose sizes depend on data. Conditions on sizes are bool, quotients of sizes f64; both of shape [1].
class Sizes {
 public:
  Sizes(Builder& builder, SymContext& symbols) : builder_(builder), symbols_(symbols) {}

  /// Expressions that appear as a dim of this tensor can be had from it.
  void add_root(Ref tensor, std::span<const SymExpr> shape);
  /// Defines a symbol (or expression) by a value of shape [1].
  void define(SymExpr expression, Ref value);

  /// nullopt: no value is known for some symbol of the expression.
  std::optional<Ref> value(SymExpr expression);
  /// A shape, i64[n]: a constant where all sizes are numbers.
  std::optional<Ref> shape(std::span<const SymExpr> sizes);

 private:
  struct Known {
    Ref value;
    uint32_t graph = 0;  // where it is computed
  };
  struct Root {
    Ref tensor;
    int64_t dim = 0;
    uint32_t graph = 0;
  };

  // By identity: handles are one pointer each.
  struct Hash {
    size_t operator()(SymExpr expression) const {
      return std::hash<const void*>()(std::bit_cast<const void*>(expression));
    }
  };

  std::optional<Ref> compute(SymExpr expression);
  std::optional<Ref> fold(std::string_view op, std::span<const SymExpr> operands);
  std::optional<Ref> call(std::string_view name, std::span<const SymExpr> operands);
  std::optional<Ref> sum(std::span<const SymExpr> operands);
  bool is_rooted(SymExpr expression);

  Builder& builder_;
  SymContext& symbols_;
  // Looked up, never iterated.
  std::unordered_map<SymExpr, Known, Hash> known_;
  std::unordered_map<SymExpr, Root, Hash> roots_;
  std::unordered_map<SymExpr, bool, Hash> rooted_;
};

}  // namespace argosy::onnx
