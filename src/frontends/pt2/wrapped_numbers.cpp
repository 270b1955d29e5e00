#include "frontends/pt2/wrapped_numbers.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "frontends/pt2/promotion.h"

namespace argosy {
namespace {

struct ScalarRow {
  std::string_view op, numbers, scalar_op;  // numbers: names of the arguments, separated by a space
};

// pow.Tensor_Tensor with a number as exponent is not here: pow.Tensor_Scalar replaces some exponents by products and
// square roots, which round differently.
constexpr ScalarRow kScalarRows[] = {
    {"aten.add.Tensor", "other", "aten.add.Scalar"},
    {"aten.add_.Tensor", "other", "aten.add_.Scalar"},
    {"aten.sub.Tensor", "other", "aten.sub.Scalar"},
    {"aten.sub_.Tensor", "other", "aten.sub_.Scalar"},
    {"aten.rsub.Tensor", "other", "aten.rsub.Scalar"},
    {"aten.mul.Tensor", "other", "aten.mul.Scalar"},
    {"aten.mul_.Tensor", "other", "aten.mul_.Scalar"},
    {"aten.div.Tensor", "other", "aten.div.Scalar"},
    {"aten.div_.Tensor", "other", "aten.div_.Scalar"},
    {"aten.div.Tensor_mode", "other", "aten.div.Scalar_mode"},
    {"aten.div_.Tensor_mode", "other", "aten.div_.Scalar_mode"},
    {"aten.floor_divide.default", "other", "aten.floor_divide.Scalar"},
    {"aten.floor_divide_.Tensor", "other", "aten.floor_divide_.Scalar"},
    {"aten.remainder.Tensor", "other", "aten.remainder.Scalar"},
    {"aten.remainder_.Tensor", "other", "aten.remainder_.Scalar"},
    {"aten.remainder.Tensor", "self", "aten.remainder.Scalar_Tensor"},
    {"aten.fmod.Tensor", "other", "aten.fmod.Scalar"},
    {"aten.fmod_.Tensor", "other", "aten.fmod_.Scalar"},
    {"aten.pow.Tensor_Tensor", "self", "aten.pow.Scalar"},
    {"aten.eq.Tensor", "other", "aten.eq.Scalar"},
    {"aten.ne.Tensor", "other", "aten.ne.Scalar"},
    {"aten.lt.Tensor", "other", "aten.lt.Scalar"},
    {"aten.le.Tensor", "other", "aten.le.Scalar"},
    {"aten.gt.Tensor", "other", "aten.gt.Scalar"},
    {"aten.ge.Tensor", "other", "aten.ge.Scalar"},
    {"aten.eq_.Tensor", "other", "aten.eq_.Scalar"},
    {"aten.ne_.Tensor", "other", "aten.ne_.Scalar"},
    {"aten.lt_.Tensor", "other", "aten.lt_.Scalar"},
    {"aten.le_.Tensor", "other", "aten.le_.Scalar"},
    {"aten.gt_.Tensor", "other", "aten.gt_.Scalar"},
    {"aten.ge_.Tensor", "other", "aten.ge_.Scalar"},
    {"aten.bitwise_and.Tensor", "other", "aten.bitwise_and.Scalar"},
    {"aten.bitwise_or.Tensor", "other", "aten.bitwise_or.Scalar"},
    {"aten.bitwise_xor.Tensor", "other", "aten.bitwise_xor.Scalar"},
    {"aten.bitwise_and_.Tensor", "other", "aten.bitwise_and_.Scalar"},
    {"aten.bitwise_or_.Tensor", "other", "aten.bitwise_or_.Scalar"},
    {"aten.bitwise_xor_.Tensor", "other", "aten.bitwise_xor_.Scalar"},
    {"aten.bitwise_left_shift.Tensor", "other", "aten.bitwise_left_shift.Tensor_Scalar"},
    {"aten.bitwise_right_shift.Tensor", "other", "aten.bitwise_right_shift.Tensor_Scalar"},
    {"aten.__and__.Tensor", "other", "aten.__and__.Scalar"},
    {"aten.__or__.Tensor", "other", "aten.__or__.Scalar"},
    {"aten.__xor__.Tensor", "other", "aten.__xor__.Scalar"},
    {"aten.where.self", "other", "aten.where.ScalarOther"},
    {"aten.where.self", "self", "aten.where.ScalarSelf"},
    {"aten.where.self", "self other", "aten.where.Scalar"},
    {"aten.copysign.Tensor", "other", "aten.copysign.Scalar"},
    {"aten.xlogy.Tensor", "other", "aten.xlogy.Scalar_Other"},
    {"aten.xlogy.Tensor", "self", "aten.xlogy.Scalar_Self"},
};

template <class T>
Result<TensorSourcePtr> literal_of(T value, DType dtype) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return literal(std::move(bytes), dtype, {});
}

}  // namespace

std::string_view scalar_overload(std::string_view op_name, std::span<const std::string_view> number_arguments) {
  std::string numbers;
  for (std::string_view name : number_arguments) numbers.append(numbers.empty() ? "" : " ").append(name);
  for (const ScalarRow& row : kScalarRows) {
    if (row.op == op_name && row.numbers == numbers) return row.scalar_op;
  }
  return {};
}

std::optional<DType> wrapped_dtype(const Graph& graph, std::span<const Argument> arguments, const Argument& number) {
  ResultType type;
  std::optional<DTypeKind> kind = number_kind(graph, number);
  if (!kind) return std::nullopt;
  type.add_number(*kind);
  bool has_dims = false;
  for (const Argument& argument : arguments) {
    const ValueId* value = argument.get_if<ValueId>();
    const TensorType* tensor = value == nullptr ? nullptr : graph[*value].tensor();
    if (tensor == nullptr) continue;
    has_dims |= !tensor->shape.empty();
    type.add_tensor(tensor->dtype, !tensor->shape.empty());
  }
  std::optional<DType> dtype = type.result();
  if (has_dims && (dtype == DType::kF16 || dtype == DType::kBF16)) dtype = DType::kF32;
  return dtype;
}

Result<TensorSourcePtr> number_tensor(const Argument& number, DType dtype) {
  double real = 0, imaginary = 0;
  int64_t integer = 0;
  bool is_integer = true;
  if (const bool* flag = number.get_if<bool>()) integer = *flag;
  if (const int64_t* value = number.get_if<int64_t>()) integer = *value;
  if (const double* value = number.get_if<double>()) {
    real = *value;
    is_integer = false;
  } else if (const auto* complex = number.get_if<std::complex<double>>()) {
    real = complex->real();
    imaginary = complex->imag();
    is_integer = false;
  } else {
    real = static_cast<double>(integer);
  }
  switch (dtype) {
    case DType::kF64: return literal_of(real, dtype);
    case DType::kF32: return literal_of(static_cast<float>(real), dtype);
    case DType::kC64: return literal_of(std::complex<float>(std::complex<double>(real, imaginary)), dtype);
    case DType::kC128: return literal_of(std::complex<double>(real, imaginary), dtype);
    case DType::kF16:
    case DType::kBF16: {
      ARGOSY_TRY(TensorSourcePtr exact, literal_of(real, DType::kF64));
      return converted(std::move(exact), dtype);
    }
    default: break;
  }
  if (is_integer) {
    switch (dtype) {
      case DType::kBool: return literal_of(static_cast<uint8_t>(integer != 0), dtype);
      case DType::kU8: return literal_of(static_cast<uint8_t>(integer), dtype);
      case DType::kI8: return literal_of(static_cast<int8_t>(integer), dtype);
      case DType::kI16: return literal_of(static_cast<int16_t>(integer), dtype);
      case DType::kI32: return literal_of(static_cast<int32_t>(integer), dtype);
      case DType::kI64: return literal_of(integer, dtype);
      default: break;
    }
  }
  return fail(ErrorCode::kUnsupportedFeature, format("a number cannot stand for a tensor of dtype {}", to_text(dtype)));
}

}  // namespace argosy
