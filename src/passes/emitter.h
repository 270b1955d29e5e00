#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "ir/rewriter.h"
#include "passes/rewrite_rules.h"

namespace argosy {

/// The op of that schema's name; where the program already knows it, the program's schema counts.
Result<OpId> find_or_add(SchemaTable& schemas, std::string_view schema);

/// Adds nodes of ATen ops before the node that a rule rewrites.
class Emitter {
 public:
  explicit Emitter(RuleContext& context) : context_(context) {}

  /// A node by the names of its arguments; those not named have the schema's defaults. `schema` is the op's text as
  /// torch has it; where the program already knows the op, the program's schema counts. Returns the (only) result.
  /// An argument that the schema lacks, or a missing one without a default, is an error.
  using Named = std::pair<std::string_view, Argument>;
  Result<ValueId> operator()(std::string_view schema, std::vector<Named> arguments, ValueType type);

  /// A node of several results.
  Result<std::vector<ValueId>> several(std::string_view schema, std::vector<Named> arguments,
                                       const std::vector<TensorType>& types);
  /// A node by all its arguments, in order.
  Result<ValueId> positional(std::string_view schema, std::vector<Argument> arguments, ValueType type);

  /// The size of a tensor's dim, as a node where it is not a number.
  Result<IntItem> size(ValueId tensor, int64_t dim);

  const Graph& graph() const { return context_.rewriter.graph(); }
  const TensorType& type(ValueId tensor) const;
  SymContext& symbols() const { return *context_.component.symbols; }
  SymExpr number(int64_t value) const { return symbols().integer(value); }

 private:
  Result<std::vector<Argument>> in_order(const OpSchema& schema, std::vector<Named> named);
  ValueId create(OpId op, std::vector<Argument> arguments, ValueType type);

  RuleContext& context_;
};

}  // namespace argosy
