#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/rewriter.h"
#include "passes/rewrite_rules.h"

namespace argosy {

/// The op that a schema text names; if the program has that op already, the program's own schema is used.
Result<OpId> find_or_add(SchemaTable& schemas, std::string_view schema);
/// A dim counted from the front; nullopt: out of range.
std::optional<size_t> wrap_dim(int64_t dim, size_t rank);
/// A list of numbers, none of them computed.
std::optional<std::vector<int64_t>> numbers(const Argument& argument);
IntList to_list(const std::vector<int64_t>& numbers);

/// Thrown by an AtenBuilder where an op is used in a way that cannot be written in others; it never leaves
/// `or_refused`.
struct Refused : std::exception {
  explicit Refused(Error what_is_wrong) : error(std::move(what_is_wrong)) {}
  const char* what() const noexcept override { return error.message.c_str(); }
  Error error;
};

/// Calls a function that returns a Result or a Status; a Refused that it throws becomes the error.
template <typename Function>
auto or_refused(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (Refused& refused) {
    return fail(std::move(refused.error));
  }
}

using Sizes = std::vector<SymExpr>;

/// Builds nodes of ATen ops where the context's rewriter inserts: each function adds one node and infers the type of
/// its result. Tensors are broadcast and promoted as in torch. Dims count from the front; negative ones from behind. In
/// a rule it also knows the node that the rule looks at: its arguments by name, and how it is replaced.
class AtenBuilder {
 public:
  /// If the context has no node, nodes can only be added: there is none to look at or to replace.
  explicit AtenBuilder(RuleContext& context, const RewriteRule* rule = nullptr);

  // ---- the node of a rule; copies, which stay valid while nodes are added
  const OpSchema& schema() const { return *schema_; }
  const std::string& op() const { return schema_->name; }
  const RewriteRule& rule() const { return *rule_; }
  /// The user data of the rule.
  template <typename Data>
  const Data& data() const {
    return *static_cast<const Data*>(rule_->user_data);
  }
  const std::vector<Argument>& arguments() const { return node_.arguments; }
  /// An argument that the op's schema has.
  const Argument& argument(std::string_view name) const;
  ValueId operator[](std::string_view name) const { return std::get<ValueId>(argument(name).variant()); }
  const ValueList& tensors(std::string_view name) const { return std::get<ValueList>(argument(name).variant()); }
  /// Whether the op's schema has an argument of that name.
  bool knows(std::string_view name) const { return schema_->find_argument(name).has_value(); }
  /// Whether the schema has it and it is not None.
  bool has(std::string_view name) const { return knows(name) && !argument(name).is<None>(); }
  bool flag(std::string_view name) const;
  /// nullopt: none, or computed.
  std::optional<int64_t> integer(std::string_view name) const;
  /// A number that is not computed.
  std::optional<double> number(std::string_view name) const;
  /// A dim counted from the front; nullopt: none, computed or out of range.
  std::optional<size_t> dim(std::string_view name, size_t rank) const;
  /// A dim, or a list of them, counted from the front; None or an empty list means all dims.
  std::vector<int64_t> dims(std::string_view name, size_t rank) const;
  /// A list of numbers with one entry for each of `count` dims; a single one counts for all. nullopt: computed.
  std::optional<std::vector<int64_t>> per_dim(std::string_view name, size_t count) const;

  size_t output_count() const { return node_.outputs.size(); }
  /// The type of a tensor among the outputs, with the strides of a new one.
  TensorType result(size_t index = 0) const;
  /// The type of the first output, which may be a number.
  ValueType result_type() const { return graph()[node_.outputs[0]].type; }
  /// Whether anything reads an output of the node.
  bool is_used(size_t output) const { return !graph()[node_.outputs[output]].uses.empty(); }

  // ---- tensors
  const Graph& graph() const { return context_.rewriter.graph(); }
  const TensorType& type(ValueId tensor) const;
  /// The node whose result a tensor is, if its op has that name; else nullptr. Valid until a node is added.
  const Node* made_by(ValueId tensor, std::string_view op) const;
  /// The same for an operand of `reader`, which may be null: matches chains of nodes from the last one backwards.
  const Node* made_by(const Node* reader, size_t index, std::string_view op) const;
  /// Whether a sum or a difference, which may be null, takes its second operand as it is: times an alpha of 1.
  static bool adds_as_is(const Node* sum);
  /// An operand that is one tensor.
  static ValueId operand(const Node& node, size_t index) { return std::get<ValueId>(node.arguments[index].variant()); }
  DType dtype(ValueId tensor) const { return type(tensor).dtype; }
  const Sizes& shape(ValueId tensor) const { return type(tensor).shape; }
  size_t rank(ValueId tensor) const { return shape(tensor).size(); }
  SymExpr size(ValueId tensor, int64_t dim) const { return shape(tensor)[at(tensor, dim)]; }
  SymExpr one() const { return integer(1); }
  SymExpr integer(int64_t value) const { return symbols().integer(value); }
  SymContext& symbols() const { return *context_.component.symbols; }

  /// A size as an argument: a number, or computed from the sizes of these tensors.
  IntItem item(SymExpr size, const std::vector<ValueId>& from);
  IntList items(Sizes sizes, const std::vector<ValueId>& from);
  /// The size of one dim, or of all.
  IntItem item(ValueId tensor, int64_t dim);
  IntList items(ValueId tensor);
  /// The size of a dim, as a node.
  ValueId size_node(ValueId tensor, size_t dim);
  /// From now on `number` is used wherever that size is needed; it is computed before all nodes that are added.
  void know_size(SymExpr size, ValueId number) { known_sizes_.emplace_back(size, number); }
  static Argument as_argument(const IntItem& item);

  // ---- any op
  /// Adds a node, arguments given by name; those not given have the schema's defaults. `schema` is the op's text as
  /// torch has it; if the program has the op already, the program's own schema is used. An argument that the schema
  /// lacks, or a missing one without a default, is an error.
  using Named = std::pair<std::string_view, Argument>;
  ValueId value(std::string_view schema, std::vector<Named> arguments, ValueType type);
  ValueId node(std::string_view schema, std::vector<Named> arguments, DType dtype, Sizes shape);
  std::vector<ValueId> nodes(std::string_view schema, std::vector<Named> arguments,
                             const std::vector<TensorType>& types);
  /// Adds a node with all its arguments, in order.
  ValueId positional(std::string_view schema, std::vector<Argument> arguments, ValueType type);
  /// A copy of the rule's own node, with some arguments changed.
  ValueId repeated(std::vector<Named> changed);
  /// schema(self) with the shape of its operand.
  ValueId unary(std::string_view schema, ValueId x) { return node(schema, {{"self", x}}, dtype(x), shape(x)); }
  /// schema(self, other), broadcast; the result has the promoted dtype, or the given one.
  ValueId binary(std::string_view schema, ValueId a, ValueId b, std::optional<DType> dtype = {});

  // ---- elementwise
  ValueId add(ValueId a, ValueId b), sub(ValueId a, ValueId b), mul(ValueId a, ValueId b), div(ValueId a, ValueId b);
  ValueId add(ValueId a, double b), mul(ValueId a, double b), div(ValueId a, double b);  // of floats
  ValueId add_integer(ValueId a, int64_t b), mul_integer(ValueId a, int64_t b);
  ValueId exp(ValueId x), log(ValueId x), sigmoid(ValueId x), tanh(ValueId x), sqrt(ValueId x), rsqrt(ValueId x),
      neg(ValueId x), abs(ValueId x), floor(ValueId x), reciprocal(ValueId x), logical_not(ValueId x);
  ValueId cos(ValueId x), sin(ValueId x), bitwise_not(ValueId x);
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
  ValueId full(Sizes shape, Argument value, DType dtype, const std::vector<ValueId>& from);
  /// 0, 1, …, size - 1.
  ValueId arange(SymExpr size, DType dtype, const std::vector<ValueId>& from);

  // ---- shape; sizes that vary are found in `from` and in the tensor
  ValueId reshape(ValueId x, Sizes shape, std::vector<ValueId> from = {});
  ValueId expand(ValueId x, Sizes shape, std::vector<ValueId> from = {});
  ValueId permute(ValueId x, const std::vector<int64_t>& order);
  ValueId transpose(ValueId x, int64_t a, int64_t b);
  ValueId unsqueeze(ValueId x, int64_t dim);
  ValueId squeeze(ValueId x, int64_t dim);
  ValueId squeeze(ValueId x, const std::vector<int64_t>& dims);
  /// How much is added in front and behind, the last dim first.
  ValueId pad(ValueId x, const std::vector<int64_t>& amounts, std::optional<Argument> value = {});
  /// Every `step`th of `size` elements from `start` on.
  ValueId slice(ValueId x, int64_t dim, int64_t start, SymExpr size, int64_t step = 1,
                const std::vector<ValueId>& from = {});
  /// From `start` to `end`, as arguments of the op; `size` is the resulting size.
  ValueId slice_between(ValueId x, int64_t dim, Argument start, Argument end, SymExpr size);
  std::vector<ValueId> split(ValueId x, const std::vector<int64_t>& sizes, int64_t dim);
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

  /// Replaces the rule's node by a value, cast to the dtype of the node's result. New values take over the names and
  /// shapes of those that they replace. Returns true, for rules to return.
  bool replace(ValueId with);
  bool replace(const std::vector<ValueId>& with);
  /// Replaces the rule's node by one other node, whose results have the same types.
  bool become(std::string_view schema, std::vector<Named> arguments);
  /// Removes a node without results.
  bool erase();

  [[noreturn]] static void refuse(std::string why, std::string hint = {});

  size_t at(ValueId tensor, int64_t dim) const;
  Sizes broadcast(const Sizes& a, const Sizes& b) const;
  Sizes reduced(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims) const;

 private:
  IntItem computed(SymExpr size, const std::vector<ValueId>& from);
  std::vector<Argument> in_order(const OpSchema& schema, std::vector<Named> named) const;
  NodeId create(std::string_view schema, std::vector<Named> arguments, std::vector<ValueType> types);

  RuleContext& context_;
  const RewriteRule* rule_;
  const Node node_;
  const OpSchema* schema_;
  const size_t value_limit_;
  std::vector<std::pair<SymExpr, ValueId>> known_sizes_;
};

/// A rule whose function writes what stands in the node's place: true if it did, false if the rule does not apply.
template <bool (*function)(AtenBuilder&)>
Result<bool> write(RuleContext& context, const RewriteRule& rule) {
  return or_refused([&]() -> Result<bool> {
    AtenBuilder builder(context, &rule);
    return function(builder);
  });
}

}  // namespace argosy
