#include "passes/in_place_ops.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "passes/aten_schemas.h"

namespace argosy {
namespace {

using Kind = InPlaceOp::Kind;

struct InPlaceRow {
  std::string_view op;  // without namespace; with the overload where only that one is meant
  Kind kind;
  std::string_view schema;  // where it is not the op's own without underscore and annotations
};

// In alphabetical order.
constexpr InPlaceRow kInPlaceRows[] = {
    {"alpha_dropout_", Kind::kFunctional, aten::kAlphaDropout},
    {"as_strided_", Kind::kRefused, ""},
    {"bernoulli_.float", Kind::kFunctional, aten::kBernoulliP},
    {"copy_.default", Kind::kCopy, ""},
    {"detach_", Kind::kIdentity, ""},
    {"dropout_", Kind::kFunctional, aten::kDropout},
    {"feature_alpha_dropout_", Kind::kFunctional, aten::kFeatureAlphaDropout},
    {"feature_dropout_", Kind::kFunctional, aten::kFeatureDropout},
    {"fill_", Kind::kFill, ""},
    {"fill_diagonal_", Kind::kDiagonal, ""},
    {"float_power_", Kind::kRefused, ""},
    {"floor_divide_.Tensor", Kind::kFunctional, aten::kFloorDivide},
    {"ldexp_", Kind::kRefused, ""},
    {"normal_", Kind::kFunctional, aten::kNormalFunctional},
    {"polygamma_", Kind::kRefused, ""},
    {"pow_.Scalar", Kind::kFunctional, aten::kPowTensorScalar},
    {"pow_.Tensor", Kind::kFunctional, aten::kPowTensorTensor},
    {"requires_grad_", Kind::kIdentity, ""},
    {"resize_", Kind::kRefused, ""},
    {"resize_as_", Kind::kRefused, ""},
    {"set_", Kind::kRefused, ""},
    {"squeeze_.default", Kind::kView, aten::kSqueeze},
    {"squeeze_.dim", Kind::kView, aten::kSqueezeDim},
    {"squeeze_.dims", Kind::kView, aten::kSqueezeDims},
    {"swapaxes_", Kind::kView, aten::kSwapaxes},
    {"swapdims_", Kind::kView, aten::kSwapdims},
    {"t_", Kind::kView, aten::kT},
    {"transpose_", Kind::kView, aten::kTransposeInt},
    {"unsqueeze_", Kind::kView, aten::kUnsqueeze},
    {"zero_", Kind::kFill, ""},
};

// Ops that compute in the common dtype of their tensors, and round the result to that of the one they write.
constexpr std::string_view kPromoting[] = {
    "__and__",     "__or__",     "__xor__",      "add",         "addcdiv",   "addcmul",   "atan2",
    "bitwise_and", "bitwise_or", "bitwise_xor",  "clamp",       "clamp_max", "clamp_min", "copysign",
    "div",         "divide",     "floor_divide", "fmod",        "mul",       "multiply",  "pow",
    "remainder",   "sub",        "subtract",     "true_divide", "xlogy",
};

constexpr std::string_view kTruths[] = {
    "eq",          "ge",          "greater",    "greater_equal", "gt", "le", "less",      "less_equal",
    "logical_and", "logical_not", "logical_or", "logical_xor",   "lt", "ne", "not_equal",
};

/// add_.Tensor(Tensor(a!) self) -> Tensor(a!) becomes add.Tensor(Tensor self) -> Tensor; "" if the name is not that of
/// an in-place op.
std::string functional_schema(const OpSchema& schema) {
  constexpr size_t kNamespace = 6;  // aten and two colons
  std::string name = schema.text.substr(0, schema.text.find('('));
  size_t dot = std::min(name.find('.'), name.size());
  std::string base = name.substr(kNamespace, dot - kNamespace);
  if (base.starts_with("__i") && base.ends_with("__")) {
    base = "__" + base.substr(3);
  } else if (base.ends_with('_')) {
    base.pop_back();
  } else {
    return {};
  }
  std::string text = name.substr(0, kNamespace) + base + name.substr(dot);
  for (size_t i = name.size(); i < schema.text.size(); ++i) {
    size_t close = schema.text[i] == '(' ? schema.text.find(')', i) : std::string::npos;
    if (close != std::string::npos && i > name.size() && schema.text[close - 1] == '!') {
      i = close;
    } else {
      text += schema.text[i];
    }
  }
  return text;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// What torch computes with, if its tensors have several dtypes: those with dims count before those without.
DType common_dtype(const AtenBuilder& f, std::span<const Argument> arguments, DType own) {
  std::optional<DType> with_dims, without_dims;
  for (const Argument& argument : arguments) {
    const ValueId* id = argument.get_if<ValueId>();
    const TensorType* type = id == nullptr ? nullptr : f.graph()[*id].tensor();
    if (type == nullptr) continue;
    std::optional<DType>& common = type->shape.empty() ? without_dims : with_dims;
    common = common ? promote(*common, type->dtype).value_or(own) : type->dtype;
  }
  if (!with_dims || !without_dims) return with_dims ? *with_dims : without_dims.value_or(own);
  bool is_higher = kind_of(*without_dims) > kind_of(*with_dims) && kind_of(*without_dims) >= DTypeKind::kFloat;
  return is_higher ? promote(*with_dims, *without_dims).value_or(own) : *with_dims;
}

ValueId functional(AtenBuilder& f, const InPlaceOp& op, std::span<const Argument> given) {
  std::vector<Argument> arguments(given.begin(), given.end());
  TensorType type = f.type(std::get<ValueId>(given[0].variant()));
  const DType own = type.dtype;
  if (op.promotes) {
    type.dtype = common_dtype(f, given, own);
    for (Argument& argument : arguments) {
      ValueId* id = argument.get_if<ValueId>();
      if (id == nullptr || type.dtype == own || f.graph()[*id].tensor() == nullptr) continue;
      *id = f.cast(*id, type.dtype);
    }
  }
  if (op.gives_truth) type.dtype = DType::kBool;
  return f.cast(f.positional(op.schema, std::move(arguments), std::move(type)), own);
}

ValueId with_diagonal(AtenBuilder& f, std::span<const Argument> arguments) {
  ValueId self = std::get<ValueId>(arguments[0].variant());
  if (f.rank(self) != 2 || arguments[2] != Argument(false)) {
    f.refuse("a diagonal that is filled in anything but a matrix, or wraps around");
  }
  Argument rows = f.as_argument(f.item(self, 0)), columns = f.as_argument(f.item(self, 1));
  ValueId mask = f.node(aten::kEyeM, {{"n", std::move(rows)}, {"m", std::move(columns)}, {"dtype", DType::kBool}},
                        DType::kBool, f.shape(self));
  return f.node(aten::kMaskedFillScalar, {{"self", self}, {"mask", mask}, {"value", arguments[1]}}, f.dtype(self),
                f.shape(self));
}

}  // namespace

InPlaceOp in_place_op(const OpSchema& schema) {
  if (!schema.writes_any_argument()) return {};
  InPlaceOp op{.kind = Kind::kRefused, .schema = {}};
  size_t written = 0;
  for (const SchemaArgument& argument : schema.arguments) written += argument.is_written ? 1 : 0;
  const SchemaType& type = schema.arguments[0].type;
  bool is_plain = written == 1 && schema.arguments[0].is_written && type.kind == SchemaKind::kTensor && !type.is_list &&
                  schema.returns.size() == 1 && schema.name.starts_with("aten.");
  if (!is_plain) return op;
  std::string_view name = std::string_view(schema.name).substr(5);
  std::string_view base = name.substr(0, name.find('.'));
  for (const InPlaceRow& row : kInPlaceRows) {
    if (row.op == name || row.op == base) return {.kind = row.kind, .schema = std::string(row.schema)};
  }
  op.schema = functional_schema(schema);
  if (op.schema.empty()) return op;
  op.kind = Kind::kFunctional;
  std::string_view functional = std::string_view(op.schema).substr(6);
  functional = functional.substr(0, functional.find_first_of(".("));
  op.promotes = contains(kPromoting, functional);
  op.gives_truth = contains(kTruths, functional);
  return op;
}

ValueId in_form_of(AtenBuilder& f, ValueId tensor, ValueId like) {
  return f.expand(f.cast(tensor, f.dtype(like)), f.shape(like), {like});
}

ValueId what_is_written(AtenBuilder& f, const InPlaceOp& op, std::span<const Argument> arguments) {
  ValueId self = std::get<ValueId>(arguments[0].variant());
  if (op.kind == Kind::kFunctional) return functional(f, op, arguments);
  if (op.kind == Kind::kCopy) return in_form_of(f, std::get<ValueId>(arguments[1].variant()), self);
  if (op.kind == Kind::kDiagonal) return with_diagonal(f, arguments);
  Argument number = arguments.size() > 1 ? arguments[1] : Argument(int64_t{0});
  const ValueId* value = number.get_if<ValueId>();
  if (value != nullptr && f.graph()[*value].tensor() != nullptr) return in_form_of(f, *value, self);
  TensorType type = f.type(self);
  return f.value(aten::kFullLike, {{"self", self}, {"fill_value", std::move(number)}}, std::move(type));
}

}  // namespace argosy
