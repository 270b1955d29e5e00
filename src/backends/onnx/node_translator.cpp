#include "backends/onnx/node_translator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "backends/onnx/translator.h"
#include "base/check.h"
#include "base/text.h"

namespace argosy::onnx {
namespace {

bool is_number(SymExpr size, int64_t value) { return size.is_valid() && size.as_integer() == value; }

}  // namespace

std::string_view NodeTranslator::op() const {
  return translator_.program().schemas[translator_.graph()[node_].op].name;
}

const Argument& NodeTranslator::argument(std::string_view name) const {
  const argosy::Node& node = translator_.graph()[node_];
  auto index = translator_.program().schemas[node.op].find_argument(name);
  ARGOSY_CHECK(index, format("{} has no argument {}", op(), name));
  return node.arguments[*index];
}

bool NodeTranslator::has(std::string_view name) const {
  const argosy::Node& node = translator_.graph()[node_];
  auto index = translator_.program().schemas[node.op].find_argument(name);
  return index && !node.arguments[*index].is<None>();
}

Ref NodeTranslator::tensor(std::string_view name) const {
  const Argument& given = argument(name);
  if (given.is<None>()) return {};
  const ValueId* value = given.get_if<ValueId>();
  ARGOSY_CHECK(value != nullptr, format("argument {} of {} is no tensor", name, op()));
  return translator_.tensor(*value);
}

std::vector<ValueId> NodeTranslator::tensor_ids(std::string_view list) const {
  const Argument& given = argument(list);
  if (given.is<None>()) return {};
  const ValueList* values = given.get_if<ValueList>();
  if (values == nullptr) {
    const IntList* empty = given.get_if<IntList>();
    ARGOSY_CHECK(empty != nullptr && empty->empty(), format("argument {} of {} is no list of tensors", list, op()));
    return {};
  }
  return *values;
}

Refs NodeTranslator::tensors(std::string_view name) const {
  Refs refs;
  for (ValueId value : tensor_ids(name)) refs.push_back(value.is_valid() ? translator_.tensor(value) : Ref{});
  return refs;
}

std::optional<int64_t> NodeTranslator::constant_integer(std::string_view name) const {
  const Argument& given = argument(name);
  if (const int64_t* number = given.get_if<int64_t>()) return *number;
  if (const bool* flag = given.get_if<bool>()) return *flag ? 1 : 0;
  if (const ValueId* value = given.get_if<ValueId>()) {
    const SymType* type = translator_.graph()[*value].number();
    if (type != nullptr && type->expression.is_valid()) return type->expression.as_integer();
  }
  return std::nullopt;
}

std::optional<double> NodeTranslator::constant_number(std::string_view name) const {
  if (const double* number = argument(name).get_if<double>()) return *number;
  if (auto number = constant_integer(name)) return static_cast<double>(*number);
  return std::nullopt;
}

int64_t NodeTranslator::integer(std::string_view name) const {
  auto number = constant_integer(name);
  if (!number) decline(format("argument {} is computed by the model", name), "only a fixed number can be translated");
  return *number;
}

double NodeTranslator::real(std::string_view name) const {
  auto number = constant_number(name);
  if (!number) decline(format("argument {} is computed by the model", name), "only a fixed number can be translated");
  return *number;
}

bool NodeTranslator::flag(std::string_view name) const {
  const bool* value = argument(name).get_if<bool>();
  if (value == nullptr) decline(format("argument {} is computed by the model", name));
  return *value;
}

std::string NodeTranslator::text(std::string_view name) const {
  const std::string* value = argument(name).get_if<std::string>();
  ARGOSY_CHECK(value != nullptr, format("argument {} of {} is no text", name, op()));
  return *value;
}

std::optional<DType> NodeTranslator::dtype(std::string_view name) const {
  const DType* value = argument(name).get_if<DType>();
  return value == nullptr ? std::nullopt : std::optional(*value);
}

Ints NodeTranslator::integers(std::string_view name) const {
  const Argument& given = argument(name);
  if (given.is<None>()) return {};
  if (const int64_t* number = given.get_if<int64_t>()) return {*number};
  const IntList* list = given.get_if<IntList>();
  ARGOSY_CHECK(list != nullptr, format("argument {} of {} is no list of integers", name, op()));
  Ints numbers;
  for (const IntItem& item : *list) {
    std::optional<int64_t> number;
    if (const int64_t* fixed = std::get_if<int64_t>(&item)) {
      number = *fixed;
    } else if (const SymType* type = translator_.graph()[std::get<ValueId>(item)].number();
               type != nullptr && type->expression.is_valid()) {
      number = type->expression.as_integer();
    }
    if (!number) decline(format("argument {} is computed by the model", name), "only fixed numbers can be translated");
    numbers.push_back(*number);
  }
  return numbers;
}

Ref NodeTranslator::size(std::string_view name) const {
  if (auto number = constant_integer(name)) return ints({*number});
  const ValueId* value = argument(name).get_if<ValueId>();
  ARGOSY_CHECK(value != nullptr, format("argument {} of {} is no size", name, op()));
  return translator_.number(*value);
}

Ref NodeTranslator::sizes(std::string_view name) const {
  const IntList* list = argument(name).get_if<IntList>();
  ARGOSY_CHECK(list != nullptr, format("argument {} of {} is no list of sizes", name, op()));
  Refs parts;
  Ints numbers;
  auto flush = [&] {
    if (!numbers.empty()) parts.push_back(ints(numbers));
    numbers.clear();
  };
  for (const IntItem& item : *list) {
    if (const int64_t* fixed = std::get_if<int64_t>(&item)) {
      numbers.push_back(*fixed);
      continue;
    }
    flush();
    parts.push_back(translator_.number(std::get<ValueId>(item)));
  }
  if (parts.empty()) return ints(numbers);
  flush();
  return concat(std::move(parts), 0);
}

Ref NodeTranslator::size_item(const IntItem& item) const {
  if (const int64_t* fixed = std::get_if<int64_t>(&item)) return ints({*fixed});
  return translator_.number(std::get<ValueId>(item));
}

Ref NodeTranslator::scalar(std::string_view name, DType dtype) const {
  const Argument& given = argument(name);
  if (const double* number = given.get_if<double>()) return builder().scalar(*number, dtype);
  if (const int64_t* number = given.get_if<int64_t>()) return builder().scalar(*number, dtype);
  if (const bool* flag = given.get_if<bool>()) return builder().scalar(int64_t{*flag ? 1 : 0}, dtype);
  const ValueId* value = given.get_if<ValueId>();
  if (value == nullptr) decline(format("argument {} is a kind of number that is not known", name));
  if (translator_.graph()[*value].tensor() != nullptr) return cast(translator_.tensor(*value), dtype);
  return cast(without_dims(translator_.number(*value)), dtype);
}

Ref NodeTranslator::operand(std::string_view name, DType dtype) const { return scalar(name, dtype); }

Ref NodeTranslator::tensor(ValueId value) const { return translator_.tensor(value); }

int64_t NodeTranslator::dim(std::string_view name, int64_t rank) const {
  int64_t value = integer(name);
  return value < 0 ? value + std::max<int64_t>(rank, 1) : value;
}

Ints NodeTranslator::dims(std::string_view name, int64_t rank) const {
  Ints values = integers(name);
  for (int64_t& value : values) value = value < 0 ? value + std::max<int64_t>(rank, 1) : value;
  return values;
}

const TensorType& NodeTranslator::type_of(ValueId value) const {
  const TensorType* type = translator_.graph()[value].tensor();
  ARGOSY_CHECK(type != nullptr, format("a value of {} is no tensor", op()));
  return *type;
}

bool NodeTranslator::is_tensor(ValueId value) const { return translator_.graph()[value].tensor() != nullptr; }

const TensorType& NodeTranslator::type(std::string_view tensor) const {
  const ValueId* value = argument(tensor).get_if<ValueId>();
  ARGOSY_CHECK(value != nullptr, format("argument {} of {} is no tensor", tensor, op()));
  return type_of(*value);
}

const TensorType& NodeTranslator::result(size_t index) const { return type_of(result_id(index)); }
ValueId NodeTranslator::result_id(size_t index) const { return translator_.graph()[node_].outputs[index]; }
size_t NodeTranslator::result_count() const { return translator_.graph()[node_].outputs.size(); }
bool NodeTranslator::takes(RuntimeOp op, DType dtype) const {
  return translator_.options().runtime_ops.takes(op, dtype);
}

SymContext& NodeTranslator::symbols() const { return *translator_.component().symbols; }
Builder& NodeTranslator::builder() const { return translator_.builder(); }

Ref NodeTranslator::node(std::string_view op, Refs inputs, Attributes attributes) const {
  return builder().node(op, std::move(inputs), std::move(attributes));
}

Ref NodeTranslator::size(SymExpr expression) const {
  std::optional<Ref> value = translator_.sizes().value(expression);
  if (!value) decline("a size cannot be computed from the inputs", "please report it with the model's configuration");
  return *value;
}

Ref NodeTranslator::sizes(Shape shape) const {
  std::optional<Ref> value = translator_.sizes().shape(shape);
  if (!value) decline("a size cannot be computed from the inputs", "please report it with the model's configuration");
  return *value;
}

void NodeTranslator::define_size(SymExpr symbol, Ref value) const { translator_.sizes().define(symbol, value); }

Ref NodeTranslator::without_dims(Ref value) const { return node("Squeeze", {value, ints({0})}); }

Ref NodeTranslator::reshape(Ref value, Shape from, Shape to) const {
  if (std::ranges::equal(from, to)) return value;
  // ONNX copies a size for 0 and works one out for -1, so that most shapes are constants. Neither is possible where a
  // size is 0 already: 0 would be copied from elsewhere, and -1 divides by it.
  Ints target;
  bool has_zero = std::ranges::any_of(to, [](SymExpr size) { return is_number(size, 0); });
  bool has_unknown = false, is_constant = !has_zero;
  for (size_t i = 0; i < to.size() && is_constant; ++i) {
    auto number = to[i].is_valid() ? to[i].as_integer() : std::nullopt;
    if (number) {
      target.push_back(*number);
    } else if (i < from.size() && to[i].is_valid() && from[i] == to[i]) {
      target.push_back(0);
    } else if (!has_unknown) {
      has_unknown = true;
      target.push_back(-1);
    } else {
      is_constant = false;
    }
  }
  // -1 among copied sizes that may be 0 is not defined.
  if (is_constant && has_unknown) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (target[i] == 0 && symbols().range(to[i]).min < 1) is_constant = false;
    }
  }
  if (is_constant) return node("Reshape", {value, ints(target)});
  return node("Reshape", {value, sizes(to)}, {{"allowzero", int64_t{1}}});
}

Ref NodeTranslator::expand(Ref value, Shape from, Shape to) const {
  if (std::ranges::equal(from, to)) return value;
  // Expand broadcasts in both directions: a 1 keeps the size that is there.
  std::vector<SymExpr> target(to.begin(), to.end());
  size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[lead + i] && !is_number(to[lead + i], 0)) target[lead + i] = number(1);
  }
  return node("Expand", {value, sizes(target)});
}

Ref NodeTranslator::transpose(Ref value, const Ints& permutation) const {
  return std::ranges::is_sorted(permutation) ? value : node("Transpose", {value}, {{"perm", permutation}});
}

Ref NodeTranslator::unsqueeze(Ref value, const Ints& axes) const {
  return axes.empty() ? value : node("Unsqueeze", {value, ints(axes)});
}

Ref NodeTranslator::squeeze(Ref value, const Ints& axes) const {
  return axes.empty() ? value : node("Squeeze", {value, ints(axes)});
}

Ref NodeTranslator::slice(Ref value, int64_t axis, Ref start, Ref end, int64_t step) const {
  return node("Slice", {value, start, end, ints({axis}), ints({step})});
}

Ref NodeTranslator::concat(Refs values, int64_t axis) const {
  return values.size() == 1 ? values.front() : node("Concat", std::move(values), {{"axis", axis}});
}

Ref NodeTranslator::count_up(Ref end) const { return node("Range", {builder().integer(0), end, builder().integer(1)}); }

SymExpr NodeTranslator::elements(Shape shape) const {
  SymExpr count = number(1);
  for (SymExpr size : shape) count = symbols().mul(count, size);
  return count;
}

Ref NodeTranslator::transpose_last(Ref value, int64_t rank) const {
  Ints order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(value, order);
}

Ref NodeTranslator::reduce(std::string_view op, Ref value, const Ints& axes, bool keeps_dims) const {
  // Since opset 18 the axes of every reduction are an input.
  return node(op, {value, ints(axes)}, {{"keepdims", int64_t{keeps_dims ? 1 : 0}}});
}

void NodeTranslator::yield(const Refs& values) const {
  const argosy::Node& node = translator_.graph()[node_];
  ARGOSY_CHECK(values.size() == node.outputs.size(),
               format("{} has {} results, its translation {}", op(), node.outputs.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    ValueId output = node.outputs[i];
    if (translator_.graph()[output].tensor() == nullptr) {
      translator_.set(output, values[i]);
      continue;
    }
    if (!values[i].is_valid()) continue;  // an unused result
    translator_.set(output, cast(values[i], result(i).dtype));
  }
}

void NodeTranslator::decline(std::string message, std::string hint) const {
  throw Declined(ErrorCode::kUnsupportedFeature, format("{}: {}", op(), message), std::move(hint));
}

}  // namespace argosy::onnx
