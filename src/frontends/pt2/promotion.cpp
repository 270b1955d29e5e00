#include "frontends/pt2/promotion.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/text.h"

namespace argosy {
namespace {

constexpr DType kDefaultFloat = DType::kF32;  // torch.get_default_dtype() of every export

DType complex_of(DType dtype) {
  if (dtype == DType::kF64) return DType::kC128;
  return dtype == DType::kF16 ? DType::kC32 : DType::kC64;
}

std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_complex(*higher)) return higher;
  if (is_float(*higher)) return is_complex(*lower) ? complex_of(*higher) : *higher;
  if (*higher == DType::kBool || is_float(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

enum class Promotion : uint8_t {
  kCommon,      // operands and result take the common dtype
  kFloat,       // the same, but integers become the default float
  kDivision,    // kFloat without a rounding mode, kCommon with one
  kComparison,  // operands take the common dtype, the result is bool
};

/// `operands` are names of arguments, all of which count; Scalars among them count as numbers.
struct PromotionRow {
  std::string_view op;  // without namespace and overload; in-place twins included
  Promotion promotion;
  std::array<std::string_view, 3> operands;
};

constexpr PromotionRow kPromotions[] = {
    {"add", Promotion::kCommon, {"self", "other"}},
    {"addcmul", Promotion::kCommon, {"self", "tensor1", "tensor2"}},
    {"atan2", Promotion::kFloat, {"self", "other"}},
    {"arctan2", Promotion::kFloat, {"self", "other"}},
    {"bitwise_and", Promotion::kCommon, {"self", "other"}},
    {"bitwise_left_shift", Promotion::kCommon, {"self", "other"}},
    {"bitwise_or", Promotion::kCommon, {"self", "other"}},
    {"bitwise_right_shift", Promotion::kCommon, {"self", "other"}},
    {"bitwise_xor", Promotion::kCommon, {"self", "other"}},
    {"cat", Promotion::kCommon, {"tensors"}},
    {"clamp", Promotion::kCommon, {"self", "min", "max"}},
    {"clamp_max", Promotion::kCommon, {"self", "max"}},
    {"clamp_min", Promotion::kCommon, {"self", "min"}},
    {"concat", Promotion::kCommon, {"tensors"}},
    {"copysign", Promotion::kFloat, {"self", "other"}},
    {"div", Promotion::kDivision, {"self", "other"}},
    {"divide", Promotion::kDivision, {"self", "other"}},
    {"eq", Promotion::kComparison, {"self", "other"}},
    {"floor_divide", Promotion::kCommon, {"self", "other"}},
    {"fmax", Promotion::kCommon, {"self", "other"}},
    {"fmin", Promotion::kCommon, {"self", "other"}},
    {"fmod", Promotion::kCommon, {"self", "other"}},
    {"ge", Promotion::kComparison, {"self", "other"}},
    {"gt", Promotion::kComparison, {"self", "other"}},
    {"le", Promotion::kComparison, {"self", "other"}},
    {"lt", Promotion::kComparison, {"self", "other"}},
    {"maximum", Promotion::kCommon, {"self", "other"}},
    {"minimum", Promotion::kCommon, {"self", "other"}},
    {"mul", Promotion::kCommon, {"self", "other"}},
    {"multiply", Promotion::kCommon, {"self", "other"}},
    {"ne", Promotion::kComparison, {"self", "other"}},
    {"pow", Promotion::kCommon, {"self", "exponent"}},
    {"remainder", Promotion::kCommon, {"self", "other"}},
    {"rsub", Promotion::kCommon, {"self", "other"}},
    {"stack", Promotion::kCommon, {"tensors"}},
    {"sub", Promotion::kCommon, {"self", "other"}},
    {"subtract", Promotion::kCommon, {"self", "other"}},
    {"true_divide", Promotion::kFloat, {"self", "other"}},
    {"where", Promotion::kCommon, {"self", "other"}},
    {"xlogy", Promotion::kFloat, {"self", "other"}},
};

// Functions of one tensor that take integers to the default float.
constexpr std::string_view kFloatFunctions[] = {
    "acos",  "acosh",   "asin",       "asinh", "atan",    "atanh", "cos",    "cosh", "deg2rad", "digamma", "erf",
    "erfc",  "erfinv",  "exp",        "exp2",  "expm1",   "i0",    "lgamma", "log",  "log10",   "log1p",   "log2",
    "logit", "rad2deg", "reciprocal", "rsqrt", "sigmoid", "sin",   "sinc",   "sinh", "sqrt",    "tan",     "tanh",
};

constexpr std::string_view kToCopy =
    "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor";

/// A row resolved against one op's schema: which arguments are operands.
struct OperandIndices {
  bool promotes = false;
  Promotion promotion = Promotion::kCommon;
  bool is_in_place = false;
  std::vector<uint32_t> arguments;
  std::optional<uint32_t> rounding_mode;
};

OperandIndices resolve(const OpSchema& schema) {
  OperandIndices result;
  std::string_view name = schema.name;
  if (!name.starts_with("aten.")) return result;
  name = name.substr(5);
  name = name.substr(0, name.find('.'));
  if (!schema.arguments.empty() && schema.arguments[0].is_written && name.ends_with('_')) {
    result.is_in_place = true;
    name.remove_suffix(1);
  } else if (schema.writes_any_argument()) {
    return result;
  }
  std::array<std::string_view, 3> operands{};
  if (std::ranges::find(kFloatFunctions, name) != std::end(kFloatFunctions)) {
    result.promotion = Promotion::kFloat;
    operands[0] = "self";
  } else {
    const PromotionRow* row = std::ranges::find(kPromotions, name, &PromotionRow::op);
    if (row == std::end(kPromotions)) return result;
    result.promotion = row->promotion;
    operands = row->operands;
  }
  for (std::string_view operand : operands) {
    if (operand.empty()) continue;
    if (std::optional<uint32_t> index = schema.find_argument(operand)) result.arguments.push_back(*index);
  }
  result.rounding_mode = schema.find_argument("rounding_mode");
  result.promotes = !result.arguments.empty();
  return result;
}

std::optional<DType> common_dtype(const Graph& graph, const OperandIndices& operands,
                                  std::span<const Argument> arguments, std::span<const NewValue> outputs) {
  ResultType type;
  for (uint32_t index : operands.arguments) {
    if (std::optional<DTypeKind> kind = number_kind(graph, arguments[index])) {
      type.add_number(*kind);
      continue;
    }
    for_each_value(arguments[index], [&](ValueId id, uint32_t) {
      const TensorType* tensor = graph[id].tensor();
      if (tensor != nullptr) type.add_tensor(tensor->dtype, !tensor->shape.empty());
    });
  }
  bool is_float_result = operands.promotion == Promotion::kFloat;
  if (operands.promotion == Promotion::kDivision)
    is_float_result = !operands.rounding_mode || arguments[*operands.rounding_mode].is<None>();
  std::optional<DType> dtype = type.result();
  if (!dtype) return std::nullopt;
  if (is_float_result && !is_float(*dtype) && !is_complex(*dtype)) dtype = kDefaultFloat;
  if (operands.promotion == Promotion::kComparison) return dtype;
  // The trace recorded what torch did; where the rules say something else, nothing is touched.
  const TensorType* result = outputs.size() == 1 ? std::get_if<TensorType>(&outputs[0].type) : nullptr;
  if (result == nullptr || result->dtype != *dtype) return std::nullopt;
  return dtype;
}

bool needs_cast(const TensorType& operand, DType common) {
  if (operand.dtype == common) return false;
  bool is_half = common == DType::kF16 || common == DType::kBF16;
  return !(is_half && operand.shape.empty());
}

}  // namespace

void ResultType::Rank::add(DType other) {
  if (!dtype) {
    dtype = other;
    return;
  }
  std::optional<DType> promoted = promote(*dtype, other);
  if (!promoted) is_refused = true;
  if (promoted) dtype = promoted;
}

void ResultType::add_tensor(DType dtype, bool has_dims) { (has_dims ? with_dims_ : without_dims_).add(dtype); }

void ResultType::add_number(DTypeKind kind) {
  switch (kind) {
    case DTypeKind::kBool: return numbers_.add(DType::kBool);
    case DTypeKind::kUnsigned:
    case DTypeKind::kSigned: return numbers_.add(DType::kI64);
    case DTypeKind::kFloat: return numbers_.add(kDefaultFloat);
    case DTypeKind::kComplex: return numbers_.add(complex_of(kDefaultFloat));
  }
}

std::optional<DType> ResultType::result() const {
  if (with_dims_.is_refused || without_dims_.is_refused || numbers_.is_refused) return std::nullopt;
  return combine(with_dims_.dtype, combine(without_dims_.dtype, numbers_.dtype));
}

std::optional<DTypeKind> number_kind(const Graph& graph, const Argument& argument) {
  if (argument.is<bool>()) return DTypeKind::kBool;
  if (argument.is<int64_t>()) return DTypeKind::kSigned;
  if (argument.is<double>()) return DTypeKind::kFloat;
  if (argument.is<std::complex<double>>()) return DTypeKind::kComplex;
  const ValueId* value = argument.get_if<ValueId>();
  const SymType* number = value == nullptr ? nullptr : graph[*value].number();
  if (number == nullptr) return std::nullopt;
  switch (number->kind) {
    case SymType::Kind::kInt: return DTypeKind::kSigned;
    case SymType::Kind::kFloat: return DTypeKind::kFloat;
    case SymType::Kind::kBool: return DTypeKind::kBool;
  }
  return std::nullopt;
}

struct Promoter::Operands : OperandIndices {};

Promoter::Promoter(SchemaTable& schemas, StorageAssigner& storages, std::function<std::string(std::string)> name_value)
    : schemas_(schemas), storages_(storages), name_value_(std::move(name_value)) {}
Promoter::~Promoter() = default;

Status Promoter::cast_operands(Rewriter& rewriter, OpId op, std::vector<Argument>& arguments,
                               std::span<const NewValue> outputs, LocationId location) {
  if (op.index >= by_op_.size()) by_op_.resize(schemas_.size());
  if (!by_op_[op.index]) by_op_[op.index] = Operands{resolve(schemas_[op])};
  const Operands& operands = *by_op_[op.index];
  if (!operands.promotes) return {};
  const Graph& graph = rewriter.graph();
  std::optional<DType> common = common_dtype(graph, operands, arguments, outputs);
  if (!common) return {};
  if (operands.is_in_place) {
    const ValueId* self = arguments[0].get_if<ValueId>();
    if (self == nullptr || graph[*self].tensor() == nullptr || graph[*self].tensor()->dtype != *common) return {};
  }
  std::map<ValueId, ValueId> casts;  // a value may be an operand twice
  Status status;
  for (uint32_t index : operands.arguments) {
    for_each_value(arguments[index], [&](ValueId& value, uint32_t) {
      const TensorType* tensor = graph[value].tensor();
      if (!status || tensor == nullptr || !needs_cast(*tensor, *common)) return;
      auto known = casts.find(value);
      if (known == casts.end()) {
        Result<ValueId> created = cast(rewriter, value, *common, location);
        if (!created) {
          status = fail(std::move(created).error());
          return;
        }
        known = casts.emplace(value, *created).first;
      }
      value = known->second;
    });
  }
  return status;
}

Result<ValueId> Promoter::cast(Rewriter& rewriter, ValueId value, DType dtype, LocationId location) {
  // Another version of torch may have another schema of this op; if the table holds one, that is used.
  std::optional<OpId> op = schemas_.find("aten._to_copy.default");
  if (!op) {
    ARGOSY_TRY(op, schemas_.add(kToCopy));
  }
  std::vector<Argument> arguments;
  for (const SchemaArgument& parameter : schemas_[*op].arguments) {
    arguments.push_back(parameter.default_value.value_or(Argument(None{})));
    if (parameter.name == "self") arguments.back() = value;
    if (parameter.name == "dtype") arguments.back() = dtype;
  }
  const Graph& graph = rewriter.graph();
  TensorType type = *graph[value].tensor();
  type.dtype = dtype;
  std::string name = name_value_(format("{}_{}", graph[value].name, to_text(dtype)));
  NodeId node = rewriter.create(*op, std::move(arguments),
                                {NewValue{std::move(name), std::move(type), storages_.fresh()}}, location);
  return graph[node].outputs[0];
}

}  // namespace argosy
