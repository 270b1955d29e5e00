#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/match.h"

namespace argosy::executorch {

/// Thrown by a Formula where an op is used in a way that has no kernels; it never leaves `write`.
struct Refused : std::exception {
  explicit Refused(Error what_is_wrong) : error(std::move(what_is_wrong)) {}
  const char* what() const noexcept override { return error.message.c_str(); }
  Error error;
};

using Sizes = std::vector<SymExpr>;

/// What stands in the place of a node, written as one writes a formula: each function adds one node before it and knows
/// the type of its result. Tensors are broadcast and promoted as in torch. Dims count from the front; negative ones
/// from behind.
class Formula {
 public:
  Formula(RuleContext& context, const RewriteRule& rule)
      : match(context),
        rule_(rule),
        schemas_(context.program.schemas),
        outputs_(context.rewriter.graph()[context.node].outputs) {}

  Match match;
  const RewriteRule& rule() const { return rule_; }
  /// The node whose result a tensor is, if its op has that name; else nullptr. Valid until a node is added.
  const Node* made_by(ValueId tensor, std::string_view op) const;

  /// Whether anything reads an output of the node.
  bool is_used(size_t output) const { return !match.emit.graph()[outputs_[output]].uses.empty(); }

  // ---- the node's arguments
  ValueId operator[](std::string_view argument) const { return match.tensor(argument); }
  /// Not None; false also where the schema lacks it.
  bool has(std::string_view argument) const { return match.has(argument) && !match[argument].is<None>(); }
  bool flag(std::string_view argument) const;
  /// A number that is not computed.
  std::optional<double> number(std::string_view argument) const;
  /// A list of numbers with one entry for each of `count` dims; a single one counts for all. nullopt: computed.
  std::optional<std::vector<int64_t>> per_dim(std::string_view argument, size_t count) const;
  /// A dim, or a list of them, counted from the front; none or an empty list are all.
  std::vector<int64_t> dims(std::string_view argument, size_t rank) const;

  // ---- tensors
  const TensorType& type(ValueId tensor) const { return match.emit.type(tensor); }
  DType dtype(ValueId tensor) const { return type(tensor).dtype; }
  const Sizes& shape(ValueId tensor) const { return type(tensor).shape; }
  size_t rank(ValueId tensor) const { return shape(tensor).size(); }
  SymExpr size(ValueId tensor, int64_t dim) const { return shape(tensor)[at(tensor, dim)]; }
  SymExpr one() const { return match.emit.number(1); }
  SymExpr integer(int64_t value) const { return match.emit.number(value); }
  SymContext& symbols() const { return match.emit.symbols(); }

  /// A size as an argument: a number, or computed from the sizes of these tensors.
  IntItem item(SymExpr size, const std::vector<ValueId>& from);
  IntList items(const Sizes& sizes, const std::vector<ValueId>& from);
  static Argument argument(const IntItem& item);

  // ---- any op
  using Named = Emitter::Named;
  ValueId node(std::string_view schema, std::vector<Named> arguments, DType dtype, Sizes shape);
  std::vector<ValueId> nodes(std::string_view schema, std::vector<Named> arguments, std::vector<TensorType> types);
  /// schema(self) with the shape of its operand.
  ValueId unary(std::string_view schema, ValueId x) { return node(schema, {{"self", x}}, dtype(x), shape(x)); }
  /// schema(self, other), broadcast; the result has the promoted dtype, or the given one.
  ValueId binary(std::string_view schema, ValueId a, ValueId b, std::optional<DType> dtype = {});

  // ---- elementwise
  ValueId add(ValueId a, ValueId b), sub(ValueId a, ValueId b), mul(ValueId a, ValueId b), div(ValueId a, ValueId b);
  ValueId add(ValueId a, double b), mul(ValueId a, double b);  // of floats
  ValueId add_integer(ValueId a, int64_t b), mul_integer(ValueId a, int64_t b);
  ValueId exp(ValueId x), log(ValueId x), sigmoid(ValueId x), tanh(ValueId x), sqrt(ValueId x), rsqrt(ValueId x),
      neg(ValueId x), abs(ValueId x), floor(ValueId x), reciprocal(ValueId x), logical_not(ValueId x);
  /// Of booleans or integers.
  ValueId bitwise_and(ValueId a, ValueId b);
  /// `relation` is eq, ne, lt, le, gt or ge.
  ValueId compare(std::string_view relation, ValueId a, ValueId b);
  ValueId compare(std::string_view relation, ValueId a, Argument number);
  ValueId clamp(ValueId x, std::optional<double> min, std::optional<double> max);
  ValueId where(ValueId condition, ValueId a, ValueId b);
  ValueId where(ValueId condition, ValueId a, double b);
  ValueId cast(ValueId x, DType dtype);

  // ---- creation
  ValueId scalar(Argument value, DType dtype);
  ValueId full(const Sizes& shape, Argument value, DType dtype, const std::vector<ValueId>& from);
  /// 0, 1, …, size - 1.
  ValueId arange(SymExpr size, DType dtype, const std::vector<ValueId>& from);

  // ---- shape; sizes that vary are found in the tensor and in `from`
  ValueId reshape(ValueId x, Sizes shape, std::vector<ValueId> from = {});
  ValueId expand(ValueId x, const Sizes& shape, std::vector<ValueId> from = {});
  ValueId permute(ValueId x, const std::vector<int64_t>& order);
  ValueId transpose(ValueId x, int64_t a, int64_t b);
  ValueId unsqueeze(ValueId x, int64_t dim);
  ValueId squeeze(ValueId x, int64_t dim);
  /// Every `step`th of `size` elements from `start` on.
  ValueId slice(ValueId x, int64_t dim, int64_t start, SymExpr size, int64_t step = 1,
                const std::vector<ValueId>& from = {});
  ValueId select(ValueId x, int64_t dim, int64_t index);
  ValueId index_select(ValueId x, int64_t dim, ValueId index);
  ValueId cat(const std::vector<ValueId>& parts, int64_t dim);

  // ---- reductions and products
  ValueId sum(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims, std::optional<DType> dtype = {});
  ValueId mean(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims);
  ValueId amax(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims);
  ValueId any(ValueId x, int64_t dim, bool keeps_dim);
  ValueId matmul(ValueId a, ValueId b);
  ValueId softmax(ValueId x, int64_t dim);

  /// Puts it in the node's place, in the dtype that the node had.
  bool replace(ValueId with);
  bool replace(const std::vector<ValueId>& with) { return match.replace(with); }

  [[noreturn]] static void refuse(std::string why, std::string hint = {});
  template <class T>
  static T unwrap(Result<T> result) {
    if (!result) throw Refused(std::move(result).error());
    return *std::move(result);
  }

  size_t at(ValueId tensor, int64_t dim) const;
  Sizes broadcast(const Sizes& a, const Sizes& b) const;
  Sizes reduced(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims) const;

 private:
  IntItem computed(SymExpr size, const std::vector<ValueId>& from);

  const RewriteRule& rule_;
  const SchemaTable& schemas_;
  const std::vector<ValueId> outputs_;
};

/// A rule whose function writes a formula: true if it did, false if the rule does not apply.
template <bool (*function)(Formula&)>
Result<bool> write(RuleContext& context, const RewriteRule& rule) {
  try {
    Formula formula(context, rule);
    return function(formula);
  } catch (Refused& refused) {
    return fail(std::move(refused.error));
  }
}

}  // namespace argosy::executorch
