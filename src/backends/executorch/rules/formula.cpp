#include "backends/executorch/rules/formula.h"

#include <algorithm>
#include <numeric>

#include "backends/executorch/rules/schemas.h"
#include "base/check.h"
#include "base/text.h"
#include "passes/aten_schemas.h"

namespace argosy::executorch {

void Formula::refuse(std::string why, std::string hint) {
  throw Refused(Error(ErrorCode::kUnsupportedFeature, std::move(why), std::move(hint)));
}

const Node* Formula::made_by(ValueId tensor, std::string_view op) const {
  NodeId producer = match.emit.graph()[tensor].producer;
  if (!producer.is_valid()) return nullptr;
  const Node& node = match.emit.graph()[producer];
  return schemas_[node.op].name == op ? &node : nullptr;
}

// ---- arguments ----

bool Formula::flag(std::string_view name) const {
  if (!match.has(name)) return false;
  const bool* value = match[name].get_if<bool>();
  return value != nullptr && *value;
}

std::optional<double> Formula::number(std::string_view name) const {
  const Argument& given = match[name];
  if (const double* real = given.get_if<double>()) return *real;
  if (const int64_t* whole = given.get_if<int64_t>()) return static_cast<double>(*whole);
  if (const bool* truth = given.get_if<bool>()) return *truth ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<std::vector<int64_t>> Formula::per_dim(std::string_view name, size_t count) const {
  std::optional<std::vector<int64_t>> list = numbers(match[name]);
  if (!list) {
    if (auto single = match.integer(name)) return std::vector<int64_t>(count, *single);
    return std::nullopt;
  }
  if (list->size() == 1 && count > 1) list->resize(count, (*list)[0]);
  if (list->size() != count) return std::nullopt;
  return list;
}

std::vector<int64_t> Formula::dims(std::string_view name, size_t rank) const {
  std::vector<int64_t> given;
  if (match.has(name)) {
    if (auto single = match.integer(name)) given = {*single};
    if (auto list = numbers(match[name])) given = *list;
  }
  if (given.empty() || rank == 0) {
    given.resize(rank);
    std::iota(given.begin(), given.end(), 0);
    return given;
  }
  for (int64_t& dim : given) {
    std::optional<size_t> index = wrap_dim(dim, rank);
    if (!index) refuse("a dim that the tensor lacks");
    dim = static_cast<int64_t>(*index);
  }
  return given;
}

// ---- sizes ----

size_t Formula::at(ValueId tensor, int64_t dim) const {
  std::optional<size_t> index = wrap_dim(dim, rank(tensor));
  ARGOSY_CHECK(index.has_value(), "a formula asks for a dim that a tensor lacks");
  return *index;
}

Argument Formula::argument(const IntItem& item) {
  return std::visit([](auto value) { return Argument(value); }, item);
}

IntItem Formula::item(SymExpr size, const std::vector<ValueId>& from) {
  if (auto known = size.as_integer()) return *known;
  return computed(size, from);
}

IntItem Formula::computed(SymExpr size, const std::vector<ValueId>& from) {
  for (ValueId tensor : from) {
    const Sizes& own = shape(tensor);
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i] == size) return unwrap(match.emit.size(tensor, static_cast<int64_t>(i)));
    }
  }
  if (!size.is_valid()) refuse("a size that is not known");
  // A little more or less than one of them.
  for (ValueId tensor : from) {
    for (size_t i = 0; i < rank(tensor); ++i) {
      SymExpr own = shape(tensor)[i];
      std::optional<int64_t> more =
          own.is_valid() && !own.as_integer() ? symbols().sub(size, own).as_integer() : std::nullopt;
      if (!more) continue;
      IntItem base = unwrap(match.emit.size(tensor, static_cast<int64_t>(i)));
      return unwrap(match.emit.positional("_operator.add(Any a, Any b) -> Any", {argument(base), Argument(*more)},
                                          SymType{SymType::Kind::kInt, size}));
    }
  }
  std::string_view schema;
  switch (size.kind()) {
    case SymKind::kAdd: schema = "_operator.add(Any a, Any b) -> Any"; break;
    case SymKind::kMul: schema = "_operator.mul(Any a, Any b) -> Any"; break;
    case SymKind::kFloorDiv: schema = "_operator.floordiv(Any a, Any b) -> Any"; break;
    case SymKind::kMod: schema = "_operator.mod(Any a, Any b) -> Any"; break;
    default: refuse(format("a size that no tensor at hand has: {}", symbols().to_text(size)));
  }
  const std::vector<SymExpr> operands(size.operands().begin(), size.operands().end());
  IntItem total = item(operands[0], from);
  SymExpr so_far = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    switch (size.kind()) {
      case SymKind::kAdd: so_far = symbols().add(so_far, operands[i]); break;
      case SymKind::kMul: so_far = symbols().mul(so_far, operands[i]); break;
      default: so_far = size; break;
    }
    Argument other = argument(item(operands[i], from));
    total = unwrap(
        match.emit.positional(schema, {argument(total), std::move(other)}, SymType{SymType::Kind::kInt, so_far}));
  }
  return total;
}

IntList Formula::items(const Sizes& sizes, const std::vector<ValueId>& from) {
  IntList list;
  for (SymExpr size : sizes) list.push_back(item(size, from));
  return list;
}

Sizes Formula::broadcast(const Sizes& a, const Sizes& b) const {
  Sizes joined = a.size() >= b.size() ? a : b;
  const Sizes& other = a.size() >= b.size() ? b : a;
  for (size_t i = 0; i < other.size(); ++i) {
    SymExpr& size = joined[joined.size() - other.size() + i];
    if (size.as_integer() == 1 || (!size.as_integer() && other[i].as_integer() && other[i].as_integer() != 1)) {
      size = other[i];
    }
  }
  return joined;
}

Sizes Formula::reduced(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims) const {
  Sizes result;
  for (size_t i = 0; i < rank(x); ++i) {
    bool is_reduced = std::ranges::any_of(dims, [&](int64_t dim) { return at(x, dim) == i; });
    if (!is_reduced) result.push_back(shape(x)[i]);
    if (is_reduced && keeps_dims) result.push_back(one());
  }
  return result;
}

// ---- nodes ----

ValueId Formula::node(std::string_view schema, std::vector<Named> arguments, DType dtype, Sizes shape) {
  return unwrap(match.emit(schema, std::move(arguments), TensorType{dtype, std::move(shape), {}}));
}

std::vector<ValueId> Formula::nodes(std::string_view schema, std::vector<Named> arguments,
                                    std::vector<TensorType> types) {
  return unwrap(match.emit.several(schema, std::move(arguments), types));
}

ValueId Formula::binary(std::string_view schema, ValueId a, ValueId b, std::optional<DType> dtype) {
  if (!dtype) {
    // A tensor without dims gives way to one that has some, if they are of one category.
    DType left = type(a).dtype, right = type(b).dtype;
    DTypeKind of_left = kind_of(left), of_right = kind_of(right);
    if (rank(a) == 0 && rank(b) > 0 && of_right >= of_left) {
      dtype = right;
    } else if (rank(b) == 0 && rank(a) > 0 && of_left >= of_right) {
      dtype = left;
    } else {
      dtype = promote(left, right);
    }
    if (!dtype) refuse("operands of dtypes that have no common one");
  }
  return node(schema, {{"self", a}, {"other", b}}, *dtype, broadcast(shape(a), shape(b)));
}

ValueId Formula::add(ValueId a, ValueId b) { return binary(aten::kAddTensor, a, b); }
ValueId Formula::sub(ValueId a, ValueId b) { return binary(aten::kSubTensor, a, b); }
ValueId Formula::mul(ValueId a, ValueId b) { return binary(aten::kMulTensor, a, b); }
ValueId Formula::div(ValueId a, ValueId b) { return binary(aten::kDivTensor, a, b); }

ValueId Formula::add(ValueId a, double b) {
  if (b == 0) return a;
  return node(aten::kAddScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId Formula::mul(ValueId a, double b) {
  if (b == 1) return a;
  return node(aten::kMulScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId Formula::add_integer(ValueId a, int64_t b) {
  if (b == 0) return a;
  return node(aten::kAddScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId Formula::mul_integer(ValueId a, int64_t b) {
  if (b == 1) return a;
  return node(aten::kMulScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId Formula::exp(ValueId x) { return unary(schemas::kExp, x); }
ValueId Formula::log(ValueId x) { return unary(schemas::kLog, x); }
ValueId Formula::sigmoid(ValueId x) { return unary(aten::kSigmoid, x); }
ValueId Formula::tanh(ValueId x) { return unary(schemas::kTanh, x); }
ValueId Formula::sqrt(ValueId x) { return unary(aten::kSqrt, x); }
ValueId Formula::rsqrt(ValueId x) { return unary(schemas::kRsqrt, x); }
ValueId Formula::neg(ValueId x) { return unary(schemas::kNeg, x); }
ValueId Formula::abs(ValueId x) { return unary(schemas::kAbs, x); }
ValueId Formula::floor(ValueId x) { return unary(schemas::kFloor, x); }
ValueId Formula::reciprocal(ValueId x) { return unary(schemas::kReciprocal, x); }
ValueId Formula::logical_not(ValueId x) { return node(schemas::kLogicalNot, {{"self", x}}, DType::kBool, shape(x)); }
ValueId Formula::bitwise_and(ValueId a, ValueId b) { return binary(aten::kBitwiseAnd, a, b); }

ValueId Formula::compare(std::string_view relation, ValueId a, ValueId b) {
  return binary(format("aten::{}.Tensor(Tensor self, Tensor other) -> Tensor", relation), a, b, DType::kBool);
}

ValueId Formula::compare(std::string_view relation, ValueId a, Argument number) {
  return node(format("aten::{}.Scalar(Tensor self, Scalar other) -> Tensor", relation),
              {{"self", a}, {"other", std::move(number)}}, DType::kBool, shape(a));
}

ValueId Formula::clamp(ValueId x, std::optional<double> min, std::optional<double> max) {
  auto bound = [&](std::optional<double> value) -> Argument {
    if (!value) return None{};
    if (kind_of(dtype(x)) == DTypeKind::kFloat) return *value;
    return static_cast<int64_t>(*value);
  };
  return node(aten::kClamp, {{"self", x}, {"min", bound(min)}, {"max", bound(max)}}, dtype(x), shape(x));
}

ValueId Formula::where(ValueId condition, ValueId a, ValueId b) {
  Sizes all = broadcast(shape(condition), broadcast(shape(a), shape(b)));
  std::optional<DType> both = promote(dtype(a), dtype(b));
  if (!both) refuse("operands of dtypes that have no common one");
  return node(schemas::kWhere, {{"condition", condition}, {"self", a}, {"other", b}}, *both, std::move(all));
}

ValueId Formula::where(ValueId condition, ValueId a, double b) {
  Argument value = kind_of(dtype(a)) == DTypeKind::kFloat ? Argument(b) : Argument(static_cast<int64_t>(b));
  return where(condition, a, scalar(std::move(value), dtype(a)));
}

ValueId Formula::cast(ValueId x, DType dtype) { return unwrap(emit_cast(match.emit, x, dtype)); }

// ---- creation ----

ValueId Formula::scalar(Argument value, DType dtype) { return full({}, std::move(value), dtype, {}); }

ValueId Formula::full(const Sizes& shape, Argument value, DType dtype, const std::vector<ValueId>& from) {
  return node(aten::kFull, {{"size", items(shape, from)}, {"fill_value", std::move(value)}, {"dtype", dtype}}, dtype,
              shape);
}

ValueId Formula::arange(SymExpr size, DType dtype, const std::vector<ValueId>& from) {
  return node(aten::kArange,
              {{"start", int64_t{0}}, {"end", argument(item(size, from))}, {"step", int64_t{1}}, {"dtype", dtype}},
              dtype, {size});
}

// ---- shape ----

ValueId Formula::reshape(ValueId x, Sizes target, std::vector<ValueId> from) {
  if (shape(x) == target) return x;
  from.insert(from.begin(), x);
  // One size may be left open; the one that no tensor has as it is spares the arithmetic.
  auto has = [&](SymExpr size) {
    return size.as_integer().has_value() ||
           std::ranges::any_of(from, [&](ValueId tensor) { return std::ranges::count(shape(tensor), size) > 0; });
  };
  // Among sizes that may be 0 none can be left open.
  auto may_be_empty = [&](SymExpr size) { return !size.is_valid() || symbols().range(size).min < 1; };
  auto open = std::ranges::find_if_not(target, has);
  for (auto size = target.begin(); open != target.end() && size != target.end(); ++size) {
    if (size != open && may_be_empty(*size)) open = target.end();
  }
  IntList list;
  for (auto size = target.begin(); size != target.end(); ++size) {
    list.push_back(size == open ? IntItem(int64_t{-1}) : item(*size, from));
  }
  return node(aten::kReshape, {{"self", x}, {"shape", std::move(list)}}, dtype(x), std::move(target));
}

ValueId Formula::expand(ValueId x, const Sizes& target, std::vector<ValueId> from) {
  if (shape(x) == target) return x;
  from.insert(from.begin(), x);
  return node(aten::kExpand, {{"self", x}, {"size", items(target, from)}}, dtype(x), target);
}

ValueId Formula::permute(ValueId x, const std::vector<int64_t>& order) {
  if (std::ranges::is_sorted(order)) return x;
  Sizes sizes;
  for (int64_t dim : order) sizes.push_back(shape(x)[static_cast<size_t>(dim)]);
  return node(aten::kPermute, {{"self", x}, {"dims", to_list(order)}}, dtype(x), std::move(sizes));
}

ValueId Formula::transpose(ValueId x, int64_t a, int64_t b) {
  std::vector<int64_t> order(rank(x));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[at(x, a)], order[at(x, b)]);
  return permute(x, order);
}

ValueId Formula::unsqueeze(ValueId x, int64_t dim) {
  int64_t place = dim < 0 ? dim + static_cast<int64_t>(rank(x)) + 1 : dim;
  Sizes sizes = shape(x);
  sizes.insert(sizes.begin() + place, one());
  return node(aten::kUnsqueeze, {{"self", x}, {"dim", place}}, dtype(x), std::move(sizes));
}

ValueId Formula::squeeze(ValueId x, int64_t dim) {
  Sizes sizes = shape(x);
  size_t index = at(x, dim);
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(index));
  return node(aten::kSqueeze, {{"self", x}, {"dim", IntList{static_cast<int64_t>(index)}}}, dtype(x), std::move(sizes));
}

ValueId Formula::slice(ValueId x, int64_t dim, int64_t start, SymExpr size, int64_t step,
                       const std::vector<ValueId>& from) {
  size_t index = at(x, dim);
  Sizes sizes = shape(x);
  if (start == 0 && step == 1 && sizes[index] == size) return x;
  sizes[index] = size;
  SymExpr end = symbols().add(symbols().mul(size, integer(step)), integer(start));
  if (step != 1) end = symbols().sub(end, integer(step - 1));
  std::vector<ValueId> known = {x};
  known.insert(known.end(), from.begin(), from.end());
  return node(aten::kSlice,
              {{"self", x},
               {"dim", static_cast<int64_t>(index)},
               {"start", start},
               {"end", argument(item(end, known))},
               {"step", step}},
              dtype(x), std::move(sizes));
}

ValueId Formula::select(ValueId x, int64_t dim, int64_t index) {
  size_t place = at(x, dim);
  Sizes sizes = shape(x);
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(place));
  return node(aten::kSelect, {{"self", x}, {"dim", static_cast<int64_t>(place)}, {"index", index}}, dtype(x),
              std::move(sizes));
}

ValueId Formula::index_select(ValueId x, int64_t dim, ValueId index) {
  size_t place = at(x, dim);
  Sizes sizes = shape(x);
  sizes[place] = rank(index) == 0 ? one() : shape(index)[0];
  return node(schemas::kIndexSelect, {{"self", x}, {"dim", static_cast<int64_t>(place)}, {"index", index}}, dtype(x),
              std::move(sizes));
}

ValueId Formula::cat(const std::vector<ValueId>& parts, int64_t dim) {
  if (parts.size() == 1) return parts[0];
  Sizes sizes = shape(parts[0]);
  size_t place = at(parts[0], dim);
  std::vector<SymExpr> all;
  for (ValueId part : parts) all.push_back(shape(part)[place]);
  sizes[place] = symbols().add(all);
  return node(aten::kCat, {{"tensors", ValueList(parts.begin(), parts.end())}, {"dim", static_cast<int64_t>(place)}},
              dtype(parts[0]), std::move(sizes));
}

// ---- reductions and products ----

ValueId Formula::sum(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims, std::optional<DType> as) {
  return node(
      aten::kSumDim,
      {{"self", x}, {"dim", to_list(dims)}, {"keepdim", keeps_dims}, {"dtype", as ? Argument(*as) : Argument(None{})}},
      as.value_or(dtype(x)), reduced(x, dims, keeps_dims));
}

ValueId Formula::mean(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims) {
  return node(aten::kMeanDim, {{"self", x}, {"dim", to_list(dims)}, {"keepdim", keeps_dims}}, dtype(x),
              reduced(x, dims, keeps_dims));
}

ValueId Formula::amax(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims) {
  return node(schemas::kAmax, {{"self", x}, {"dim", to_list(dims)}, {"keepdim", keeps_dims}}, dtype(x),
              reduced(x, dims, keeps_dims));
}

ValueId Formula::any(ValueId x, int64_t dim, bool keeps_dim) {
  return node(schemas::kAnyDim, {{"self", x}, {"dim", static_cast<int64_t>(at(x, dim))}, {"keepdim", keeps_dim}},
              DType::kBool, reduced(x, {dim}, keeps_dim));
}

ValueId Formula::matmul(ValueId a, ValueId b) {
  ARGOSY_CHECK(rank(a) >= 2 && rank(b) >= 2, "a formula multiplies matrices only");
  Sizes left(shape(a).begin(), shape(a).end() - 2), right(shape(b).begin(), shape(b).end() - 2);
  Sizes all = broadcast(left, right);
  all.push_back(size(a, -2));
  all.push_back(size(b, -1));
  return node(schemas::kMatmul, {{"self", a}, {"other", b}}, dtype(a), std::move(all));
}

ValueId Formula::softmax(ValueId x, int64_t dim) {
  return node(schemas::kSoftmax, {{"self", x}, {"dim", static_cast<int64_t>(at(x, dim))}}, dtype(x), shape(x));
}

bool Formula::replace(ValueId with) {
  if (match.output_count() == 1) with = cast(with, match.result().dtype);
  return match.replace(with);
}

}  // namespace argosy::executorch
