#pragma once

#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/onnx/builder.h"
#include "backends/onnx/options.h"
#include "backends/onnx/sizes.h"
#include "ir/program.h"

namespace argosy::onnx {

class Translator;

/// Thrown by a NodeTranslator where a node uses its op in a way that has no translation; the translator reports it with
/// the node's place and goes on to the next. It never leaves translate().
struct Declined : std::exception {
  Declined(ErrorCode error_code, std::string text, std::string what_to_do)
      : error(error_code, std::move(text), std::move(what_to_do)) {}
  const char* what() const noexcept override { return error.message.c_str(); }
  Error error;
};

using Shape = std::span<const SymExpr>;

/// Turns the arguments of one verified node into ONNX nodes. Arguments are read by their names in the op's schema; a
/// wrong name is a bug of ours. Every number can be read as a value; reading a plain number where the model computes
/// one declines the node.
class NodeTranslator {
 public:
  NodeTranslator(Translator& translator, NodeId node) : translator_(translator), node_(node) {}

  // ---- arguments
  std::string_view op() const;                // "aten.add.Tensor"
  bool has(std::string_view name) const;      // the schema has it, and it is not None
  Ref tensor(std::string_view name) const;    // invalid if None
  Refs tensors(std::string_view name) const;  // of a list; None is invalid
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  Ints integers(std::string_view name) const;
  /// A number that is a constant; nullopt if it is computed.
  std::optional<int64_t> constant_integer(std::string_view name) const;
  std::optional<double> constant_number(std::string_view name) const;
  Ref size(std::string_view name) const;                 // i64[1]
  Ref sizes(std::string_view name) const;                // i64[n]
  Ref size_item(const IntItem& item) const;              // i64[1]
  Ref scalar(std::string_view name, DType dtype) const;  // without dims
  /// A tensor or a number, of that element type.
  Ref operand(std::string_view name, DType dtype) const;
  /// A dim, or all of a list, counted from 0 in a tensor of that rank.
  int64_t dim(std::string_view name, int64_t rank) const;
  Ints dims(std::string_view name, int64_t rank) const;
  const Argument& argument(std::string_view name) const;

  // ---- types
  const TensorType& type(std::string_view tensor) const;
  const TensorType& type_of(ValueId value) const;
  bool is_tensor(ValueId value) const;
  Shape shape(std::string_view tensor) const { return type(tensor).shape; }
  int64_t rank(std::string_view tensor) const { return static_cast<int64_t>(type(tensor).shape.size()); }
  std::vector<ValueId> tensor_ids(std::string_view list) const;
  Ref tensor(ValueId value) const;
  const TensorType& result(size_t index = 0) const;
  size_t result_count() const;
  ValueId result_id(size_t index) const;
  SymContext& symbols() const;
  SymExpr number(int64_t value) const { return symbols().integer(value); }

  // ---- nodes
  Builder& builder() const;
  int opset() const { return builder().opset(); }
  /// Whether an op of ONNX Runtime's own may be used with this type.
  bool takes(RuntimeOp op, DType dtype) const;
  Ref node(std::string_view op, Refs inputs, Attributes attributes = {}) const;
  Ref cast(Ref value, DType dtype) const { return builder().cast(value, dtype); }
  Ref ints(const Ints& values) const { return builder().ints(values); }
  /// A constant without dims, of the element type of a value.
  Ref like(Ref value, double number) const { return builder().scalar(number, builder().dtype(value)); }
  /// A size as i64[1], a shape as i64[n].
  Ref size(SymExpr expression) const;
  Ref sizes(Shape shape) const;
  /// Defines a symbol that the emitter made by a value, i64[1].
  void define_size(SymExpr symbol, Ref value) const;
  /// A [1] value without its dim.
  Ref without_dims(Ref value) const;

  Ref reshape(Ref value, Shape from, Shape to) const;
  Ref expand(Ref value, Shape from, Shape to) const;
  Ref transpose(Ref value, const Ints& permutation) const;
  Ref unsqueeze(Ref value, const Ints& axes) const;
  Ref squeeze(Ref value, const Ints& axes) const;
  /// Elements [start, end) of one dim; each is i64[1].
  Ref slice(Ref value, int64_t axis, Ref start, Ref end, int64_t step = 1) const;
  Ref concat(Refs values, int64_t axis) const;
  /// 0, 1, …, end - 1 as i64; the end has no dims.
  Ref count_up(Ref end) const;
  Ref count_up(SymExpr end) const { return count_up(without_dims(size(end))); }
  /// How many elements a shape has.
  SymExpr elements(Shape shape) const;
  /// With the last two dims exchanged.
  Ref transpose_last(Ref value, int64_t rank) const;
  /// A reduction over axes, which is an input or an attribute, depending on op and opset.
  Ref reduce(std::string_view op, Ref value, const Ints& axes, bool keeps_dims) const;
  Ref add(Ref a, Ref b) const { return node("Add", {a, b}); }
  Ref sub(Ref a, Ref b) const { return node("Sub", {a, b}); }
  Ref mul(Ref a, Ref b) const { return node("Mul", {a, b}); }
  Ref div(Ref a, Ref b) const { return node("Div", {a, b}); }

  // ---- results
  /// Sets the node's results; each is cast to the dtype that the node has.
  void yield(Ref value) const { yield(Refs{value}); }
  void yield(const Refs& values) const;
  [[noreturn]] void decline(std::string message, std::string hint = {}) const;
  Translator& translator() const { return translator_; }
  NodeId node_id() const { return node_; }

 private:
  Translator& translator_;
  NodeId node_;
};

}  // namespace argosy::onnx
