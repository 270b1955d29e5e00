#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/text.h"
#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"

// The typed functions of AtenBuilder: one node each.
namespace argosy {

// ---- elementwise ----

ValueId AtenBuilder::binary(std::string_view schema, ValueId a, ValueId b, std::optional<DType> dtype) {
  if (!dtype) {
    // The dtype of a tensor without dims does not count beside one with dims, if that is of the same or a higher kind.
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

ValueId AtenBuilder::add(ValueId a, ValueId b) { return binary(aten::kAddTensor, a, b); }
ValueId AtenBuilder::sub(ValueId a, ValueId b) { return binary(aten::kSubTensor, a, b); }
ValueId AtenBuilder::mul(ValueId a, ValueId b) { return binary(aten::kMulTensor, a, b); }
ValueId AtenBuilder::div(ValueId a, ValueId b) { return binary(aten::kDivTensor, a, b); }

ValueId AtenBuilder::add(ValueId a, double b) {
  if (b == 0) return a;
  return node(aten::kAddScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId AtenBuilder::mul(ValueId a, double b) {
  if (b == 1) return a;
  return node(aten::kMulScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId AtenBuilder::div(ValueId a, double b) {
  if (b == 1) return a;
  return node(aten::kDivScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId AtenBuilder::add_integer(ValueId a, int64_t b) {
  if (b == 0) return a;
  return node(aten::kAddScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId AtenBuilder::mul_integer(ValueId a, int64_t b) {
  if (b == 1) return a;
  return node(aten::kMulScalar, {{"self", a}, {"other", b}}, dtype(a), shape(a));
}

ValueId AtenBuilder::exp(ValueId x) { return unary(aten::kExp, x); }
ValueId AtenBuilder::log(ValueId x) { return unary(aten::kLog, x); }
ValueId AtenBuilder::sigmoid(ValueId x) { return unary(aten::kSigmoid, x); }
ValueId AtenBuilder::tanh(ValueId x) { return unary(aten::kTanh, x); }
ValueId AtenBuilder::sqrt(ValueId x) { return unary(aten::kSqrt, x); }
ValueId AtenBuilder::rsqrt(ValueId x) { return unary(aten::kRsqrt, x); }
ValueId AtenBuilder::neg(ValueId x) { return unary(aten::kNeg, x); }
ValueId AtenBuilder::abs(ValueId x) { return unary(aten::kAbs, x); }
ValueId AtenBuilder::floor(ValueId x) { return unary(aten::kFloor, x); }
ValueId AtenBuilder::reciprocal(ValueId x) { return unary(aten::kReciprocal, x); }
ValueId AtenBuilder::logical_not(ValueId x) { return node(aten::kLogicalNot, {{"self", x}}, DType::kBool, shape(x)); }
ValueId AtenBuilder::cos(ValueId x) { return unary(aten::kCos, x); }
ValueId AtenBuilder::sin(ValueId x) { return unary(aten::kSin, x); }
ValueId AtenBuilder::bitwise_not(ValueId x) { return unary(aten::kBitwiseNot, x); }
ValueId AtenBuilder::bitwise_and(ValueId a, ValueId b) { return binary(aten::kBitwiseAndTensor, a, b); }

ValueId AtenBuilder::compare(std::string_view relation, ValueId a, ValueId b) {
  return binary(format("aten::{}.Tensor(Tensor self, Tensor other) -> Tensor", relation), a, b, DType::kBool);
}

ValueId AtenBuilder::compare(std::string_view relation, ValueId a, Argument number) {
  return node(format("aten::{}.Scalar(Tensor self, Scalar other) -> Tensor", relation),
              {{"self", a}, {"other", std::move(number)}}, DType::kBool, shape(a));
}

ValueId AtenBuilder::clamp(ValueId x, std::optional<double> min, std::optional<double> max) {
  auto bound = [&](std::optional<double> value) -> Argument {
    if (!value) return None{};
    if (kind_of(dtype(x)) == DTypeKind::kFloat) return *value;
    return static_cast<int64_t>(*value);
  };
  return node(aten::kClamp, {{"self", x}, {"min", bound(min)}, {"max", bound(max)}}, dtype(x), shape(x));
}

ValueId AtenBuilder::where(ValueId condition, ValueId a, ValueId b) {
  Sizes all = broadcast(shape(condition), broadcast(shape(a), shape(b)));
  std::optional<DType> both = promote(dtype(a), dtype(b));
  if (!both) refuse("operands of dtypes that have no common one");
  return node(aten::kWhereSelf, {{"condition", condition}, {"self", cast(a, *both)}, {"other", cast(b, *both)}}, *both,
              std::move(all));
}

ValueId AtenBuilder::where(ValueId condition, ValueId a, double b) {
  Argument value = kind_of(dtype(a)) == DTypeKind::kFloat ? Argument(b) : Argument(static_cast<int64_t>(b));
  return where(condition, a, scalar(std::move(value), dtype(a)));
}

ValueId AtenBuilder::cast(ValueId x, DType dtype) {
  if (type(x).dtype == dtype) return x;
  return node(aten::kToDtype, {{"self", x}, {"dtype", dtype}}, dtype, shape(x));
}

// ---- creation ----

ValueId AtenBuilder::scalar(Argument value, DType dtype) { return full({}, std::move(value), dtype, {}); }

ValueId AtenBuilder::full(Sizes shape, Argument value, DType dtype, const std::vector<ValueId>& from) {
  IntList list = items(shape, from);
  return node(aten::kFull, {{"size", std::move(list)}, {"fill_value", std::move(value)}, {"dtype", dtype}}, dtype,
              std::move(shape));
}

ValueId AtenBuilder::arange(SymExpr size, DType dtype, const std::vector<ValueId>& from) {
  return node(aten::kArangeStartStep,
              {{"start", int64_t{0}}, {"end", as_argument(item(size, from))}, {"step", int64_t{1}}, {"dtype", dtype}},
              dtype, {size});
}

// ---- shape ----

ValueId AtenBuilder::reshape(ValueId x, Sizes target, std::vector<ValueId> from) {
  if (shape(x) == target) return x;
  from.push_back(x);
  // One size may be -1: best one that no tensor has as it is, which saves the arithmetic.
  auto has = [&](SymExpr size) {
    return size.as_integer().has_value() ||
           std::ranges::any_of(from, [&](ValueId tensor) { return std::ranges::count(shape(tensor), size) > 0; });
  };
  // No size can be -1 beside sizes that may be 0.
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

ValueId AtenBuilder::expand(ValueId x, Sizes target, std::vector<ValueId> from) {
  if (shape(x) == target) return x;
  from.push_back(x);
  IntList list = items(target, from);
  return node(aten::kExpand, {{"self", x}, {"size", std::move(list)}}, dtype(x), std::move(target));
}

ValueId AtenBuilder::permute(ValueId x, const std::vector<int64_t>& order) {
  if (std::ranges::is_sorted(order)) return x;
  Sizes sizes;
  for (int64_t dim : order) sizes.push_back(shape(x)[static_cast<size_t>(dim)]);
  return node(aten::kPermute, {{"self", x}, {"dims", to_list(order)}}, dtype(x), std::move(sizes));
}

ValueId AtenBuilder::transpose(ValueId x, int64_t a, int64_t b) {
  std::vector<int64_t> order(rank(x));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[at(x, a)], order[at(x, b)]);
  return permute(x, order);
}

ValueId AtenBuilder::unsqueeze(ValueId x, int64_t dim) {
  int64_t place = dim < 0 ? dim + static_cast<int64_t>(rank(x)) + 1 : dim;
  Sizes sizes = shape(x);
  sizes.insert(sizes.begin() + place, one());
  return node(aten::kUnsqueeze, {{"self", x}, {"dim", place}}, dtype(x), std::move(sizes));
}

ValueId AtenBuilder::squeeze(ValueId x, int64_t dim) {
  return squeeze(x, std::vector<int64_t>{static_cast<int64_t>(at(x, dim))});
}

ValueId AtenBuilder::squeeze(ValueId x, const std::vector<int64_t>& dims) {
  return node(aten::kSqueezeDims, {{"self", x}, {"dim", to_list(dims)}}, dtype(x), reduced(x, dims, false));
}

ValueId AtenBuilder::pad(ValueId x, const std::vector<int64_t>& amounts, std::optional<Argument> with) {
  Sizes sizes = shape(x);
  for (size_t i = 0; 2 * i + 1 < amounts.size(); ++i) {
    SymExpr& size = sizes[sizes.size() - 1 - i];
    size = symbols().add(size, integer(amounts[2 * i] + amounts[2 * i + 1]));
  }
  std::vector<Named> arguments = {{"self", x}, {"pad", to_list(amounts)}};
  if (with) arguments.emplace_back("value", *std::move(with));
  return node(aten::kConstantPadNd, std::move(arguments), dtype(x), std::move(sizes));
}

ValueId AtenBuilder::slice(ValueId x, int64_t dim, int64_t start, SymExpr size, int64_t step,
                           const std::vector<ValueId>& from) {
  size_t index = at(x, dim);
  Sizes sizes = shape(x);
  if (start == 0 && step == 1 && sizes[index] == size) return x;
  sizes[index] = size;
  SymExpr end = symbols().add(symbols().mul(size, integer(step)), integer(start));
  if (step != 1) end = symbols().sub(end, integer(step - 1));
  std::vector<ValueId> known = {x};
  known.insert(known.end(), from.begin(), from.end());
  return node(aten::kSliceTensor,
              {{"self", x},
               {"dim", static_cast<int64_t>(index)},
               {"start", start},
               {"end", as_argument(item(end, known))},
               {"step", step}},
              dtype(x), std::move(sizes));
}

ValueId AtenBuilder::slice_between(ValueId x, int64_t dim, Argument start, Argument end, SymExpr size) {
  size_t index = at(x, dim);
  Sizes sizes = shape(x);
  sizes[index] = size;
  return node(aten::kSliceTensor,
              {{"self", x}, {"dim", static_cast<int64_t>(index)}, {"start", std::move(start)}, {"end", std::move(end)}},
              dtype(x), std::move(sizes));
}

std::vector<ValueId> AtenBuilder::split(ValueId x, const std::vector<int64_t>& sizes, int64_t dim) {
  size_t index = at(x, dim);
  std::vector<TensorType> types;
  for (int64_t size : sizes) {
    types.push_back({dtype(x), shape(x), {}});
    types.back().shape[index] = integer(size);
  }
  return nodes(aten::kSplitWithSizes,
               {{"self", x}, {"split_sizes", to_list(sizes)}, {"dim", static_cast<int64_t>(index)}}, types);
}

ValueId AtenBuilder::select(ValueId x, int64_t dim, int64_t index) {
  size_t place = at(x, dim);
  Sizes sizes = shape(x);
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(place));
  return node(aten::kSelectInt, {{"self", x}, {"dim", static_cast<int64_t>(place)}, {"index", index}}, dtype(x),
              std::move(sizes));
}

ValueId AtenBuilder::index_select(ValueId x, int64_t dim, ValueId index) {
  size_t place = at(x, dim);
  Sizes sizes = shape(x);
  sizes[place] = rank(index) == 0 ? one() : shape(index)[0];
  return node(aten::kIndexSelect, {{"self", x}, {"dim", static_cast<int64_t>(place)}, {"index", index}}, dtype(x),
              std::move(sizes));
}

ValueId AtenBuilder::cat(const std::vector<ValueId>& parts, int64_t dim) {
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

ValueId AtenBuilder::sum(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims, std::optional<DType> as) {
  if (rank(x) == 0) return cast(x, as.value_or(dtype(x)));
  return node(
      aten::kSumDimIntList,
      {{"self", x}, {"dim", to_list(dims)}, {"keepdim", keeps_dims}, {"dtype", as ? Argument(*as) : Argument(None{})}},
      as.value_or(dtype(x)), reduced(x, dims, keeps_dims));
}

ValueId AtenBuilder::mean(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims) {
  if (rank(x) == 0) return x;
  return node(aten::kMeanDim, {{"self", x}, {"dim", to_list(dims)}, {"keepdim", keeps_dims}}, dtype(x),
              reduced(x, dims, keeps_dims));
}

ValueId AtenBuilder::amax(ValueId x, const std::vector<int64_t>& dims, bool keeps_dims) {
  if (rank(x) == 0) return x;
  return node(aten::kAmax, {{"self", x}, {"dim", to_list(dims)}, {"keepdim", keeps_dims}}, dtype(x),
              reduced(x, dims, keeps_dims));
}

ValueId AtenBuilder::any(ValueId x, int64_t dim, bool keeps_dim) {
  return node(aten::kAnyDim, {{"self", x}, {"dim", static_cast<int64_t>(at(x, dim))}, {"keepdim", keeps_dim}},
              DType::kBool, reduced(x, {dim}, keeps_dim));
}

ValueId AtenBuilder::matmul(ValueId a, ValueId b) {
  ARGOSY_CHECK(rank(a) >= 2 && rank(b) >= 2, "a formula multiplies matrices only");
  Sizes left(shape(a).begin(), shape(a).end() - 2), right(shape(b).begin(), shape(b).end() - 2);
  Sizes all = broadcast(left, right);
  all.push_back(size(a, -2));
  all.push_back(size(b, -1));
  return node(aten::kMatmul, {{"self", a}, {"other", b}}, dtype(a), std::move(all));
}

ValueId AtenBuilder::softmax(ValueId x, int64_t dim) {
  return node(aten::kSoftmaxInt, {{"self", x}, {"dim", static_cast<int64_t>(at(x, dim))}}, dtype(x), shape(x));
}

}  // namespace argosy
