#include <cmath>
#include <limits>
#include <numbers>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// An operand in the result's dtype, which is a float for integers.
ValueId as_result(AtenBuilder& f, std::string_view operand) { return f.cast(f[operand], f.result().dtype); }

/// number - x
ValueId subtract_from(AtenBuilder& f, double number, ValueId x) {
  return f.node(aten::kRsubScalar, {{"self", x}, {"other", number}}, f.dtype(x), f.shape(x));
}

ValueId is_nan(AtenBuilder& f, ValueId x) { return f.node(aten::kIsnan, {{"self", x}}, DType::kBool, f.shape(x)); }

/// 2 to the power of each.
ValueId power_of_two(AtenBuilder& f, ValueId x) {
  Argument two = is_float(f.dtype(x)) ? Argument(2.0) : Argument(int64_t{2});
  return f.node(aten::kPowScalar, {{"self", std::move(two)}, {"exponent", x}}, f.dtype(x), f.shape(x));
}

/// Rounded down.
ValueId whole_quotient(AtenBuilder& f, ValueId x, Argument by) {
  std::string_view schema = by.is<ValueId>() ? aten::kDivTensorMode : aten::kDivScalarMode;
  const TensorType result = f.result();
  return f.node(schema, {{"self", x}, {"other", std::move(by)}, {"rounding_mode", std::string("floor")}}, result.dtype,
                result.shape);
}

/// A power of two is exact where exp(x * log(2)) is not.
bool decompose_exp2(AtenBuilder& f) { return f.replace(power_of_two(f, as_result(f, "self"))); }

/// tanh(x / 2) * (exp(x) + 1), which loses nothing of small numbers
bool decompose_expm1(AtenBuilder& f) {
  ValueId x = as_result(f, "self");
  ValueId tangent = f.tanh(f.mul(x, 0.5));
  return f.replace(f.mul(tangent, f.add(f.exp(x), 1.0)));
}

/// log(u) * x / (u - 1) with u = 1 + x, which loses nothing of small numbers
bool decompose_log1p(AtenBuilder& f) {
  ValueId x = as_result(f, "self");
  ValueId u = f.add(x, 1.0), distance = f.add(u, -1.0);
  ValueId exact = f.div(f.mul(f.log(u), x), distance);
  ValueId is_tiny = f.compare("eq", distance, Argument(0.0)), is_infinite = f.compare("eq", x, Argument(kInfinity));
  return f.replace(f.where(f.binary(aten::kBitwiseOrTensor, is_tiny, is_infinite), x, exact));
}

bool decompose_log2(AtenBuilder& f) { return f.replace(f.mul(f.log(as_result(f, "self")), std::numbers::log2e)); }
bool decompose_log10(AtenBuilder& f) { return f.replace(f.mul(f.log(as_result(f, "self")), std::numbers::log10e)); }
bool decompose_rsqrt(AtenBuilder& f) { return f.replace(f.reciprocal(f.sqrt(as_result(f, "self")))); }
bool decompose_erfc(AtenBuilder& f) {
  return f.replace(subtract_from(f, 1, f.unary(aten::kErf, as_result(f, "self"))));
}

/// Giles' approximation in single precision, one polynomial in the middle and one for the tails.
bool decompose_erfinv(AtenBuilder& f) {
  DType dtype = f.result().dtype;
  ValueId x = f.cast(f["self"], bits_of(dtype) < 32 ? DType::kF32 : dtype);
  auto polynomial = [&](ValueId w, std::initializer_list<double> factors) {
    ValueId value = f.mul(w, *factors.begin());
    for (const double* each = factors.begin() + 1; each + 1 != factors.end(); ++each) {
      value = f.mul(f.add(value, *each), w);
    }
    return f.add(value, *(factors.end() - 1));
  };
  // Near 1 the difference is exact, and near 0 the polynomial needs few digits of w.
  ValueId below = subtract_from(f, 1, x);
  ValueId w = f.neg(f.log(f.mul(below, f.add(x, 1.0))));
  ValueId middle = polynomial(f.add(w, -2.5), {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                                               0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  ValueId tail =
      polynomial(f.add(f.sqrt(w), -3.0), {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                          -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  ValueId value = f.mul(f.where(f.compare("lt", w, Argument(5.0)), middle, tail), x);
  // At 1 and -1 the tail is inf - inf.
  ValueId is_end = f.compare("eq", f.abs(x), Argument(1.0));
  return f.replace(f.where(is_end, f.mul(x, kInfinity), value));
}

bool decompose_isfinite(AtenBuilder& f) {
  ValueId x = f["self"];
  return is_float(f.dtype(x)) && f.replace(f.compare("lt", f.abs(x), Argument(kInfinity)));
}

bool decompose_is_infinity(AtenBuilder& f) {
  ValueId x = f["self"];
  double which = f.op() == "aten.isneginf.default" ? -kInfinity : kInfinity;
  return is_float(f.dtype(x)) && f.replace(f.compare("eq", x, Argument(which)));
}

double largest(DType dtype) {
  if (dtype == DType::kF64) return std::numeric_limits<double>::max();
  if (dtype == DType::kF16) return 65504;
  if (dtype == DType::kBF16) return 3.3895313892515355e38;
  return static_cast<double>(std::numeric_limits<float>::max());
}

bool decompose_nan_to_num(AtenBuilder& f) {
  ValueId x = f["self"];
  if (!is_float(f.dtype(x))) return f.replace(x);
  auto given = [&](std::string_view name, double otherwise) {
    return f.has(name) ? f.number(name).value_or(otherwise) : otherwise;
  };
  double limit = largest(f.dtype(x));
  auto constant = [&](double value) { return f.scalar(value, f.dtype(x)); };
  // The elements of x that are `condition` become a number.
  auto replaced = [&](ValueId condition, double value, ValueId rest) {
    return f.where(condition, constant(value), rest);
  };
  ValueId result = replaced(is_nan(f, x), given("nan", 0), x);
  if (!f.has("posinf") && !f.has("neginf")) return f.replace(f.clamp(result, -limit, limit));
  result = replaced(f.compare("eq", x, Argument(kInfinity)), given("posinf", limit), result);
  return f.replace(replaced(f.compare("eq", x, Argument(-kInfinity)), given("neginf", -limit), result));
}

bool decompose_trunc(AtenBuilder& f) {
  constexpr std::string_view kCeil = aten::kCeil;
  ValueId x = f["self"];
  ValueId is_negative = f.compare("lt", x, Argument(0.0)), up = f.unary(kCeil, x);
  return f.replace(f.where(is_negative, up, f.floor(x)));
}

bool decompose_frac(AtenBuilder& f) { return f.replace(f.sub(f["self"], f.unary(aten::kTrunc, f["self"]))); }

/// The kernel keeps NaN, where torch gives 0.
bool decompose_sign(AtenBuilder& f) {
  ValueId x = f["self"];
  if (!is_float(f.dtype(x))) return false;
  ValueId above = f.cast(f.compare("gt", x, Argument(0.0)), f.dtype(x));
  return f.replace(f.sub(above, f.cast(f.compare("lt", x, Argument(0.0)), f.dtype(x))));
}

/// Kernels give the remainder of integers the sign of the dividend, as C does.
bool decompose_remainder(AtenBuilder& f) {
  const TensorType result = f.result();
  if (kind_of(result.dtype) == DTypeKind::kFloat || kind_of(result.dtype) == DTypeKind::kComplex) return false;
  ValueId x = f.cast(f["self"], result.dtype);
  if (f.op() == "aten.remainder.Tensor") {
    ValueId y = f.cast(f["other"], result.dtype);
    return f.replace(f.sub(x, f.mul(whole_quotient(f, x, y), y)));
  }
  std::optional<int64_t> y = f.integer("other");
  if (!y || *y == 0) return false;
  return f.replace(f.sub(x, f.mul_integer(whole_quotient(f, x, *y), *y)));
}

/// Of sizes: the runtime's remainder has the sign of the dividend, Python's that of the divisor.
bool decompose_size_remainder(AtenBuilder& f) {
  const Argument a = f.argument("a"), b = f.argument("b");
  const int64_t* divisor = b.get_if<int64_t>();
  const ValueId* value = a.get_if<ValueId>();
  if (divisor == nullptr || *divisor <= 0 || value == nullptr) return false;
  const SymType* dividend = f.graph()[*value].number();
  if (dividend == nullptr || dividend->kind != SymType::Kind::kInt || !dividend->expression.is_valid()) return false;
  SymExpr size = dividend->expression, by = f.integer(*divisor);
  if (f.symbols().range(size).min >= 0) return false;
  auto number = [&](std::string_view schema, Argument x, Argument y, SymExpr result) {
    return f.value(schema, {{"a", std::move(x)}, {"b", std::move(y)}}, SymType{SymType::Kind::kInt, result});
  };
  SymExpr quotient = f.symbols().floor_div(size, by), whole = f.symbols().mul(quotient, by);
  ValueId part = number("_operator.floordiv(Any a, Any b) -> Any", a, b, quotient);
  part = number("_operator.mul(Any a, Any b) -> Any", part, b, whole);
  SymExpr left = std::get<SymType>(f.result_type()).expression;
  return f.replace(number("_operator.sub(Any a, Any b) -> Any", a, part, left));
}

bool decompose_deg2rad(AtenBuilder& f) { return f.replace(f.mul(as_result(f, "self"), std::numbers::pi / 180)); }
bool decompose_rad2deg(AtenBuilder& f) { return f.replace(f.mul(as_result(f, "self"), 180 / std::numbers::pi)); }

/// start + weight * (end - start)
bool decompose_lerp(AtenBuilder& f) {
  ValueId start = f["self"], distance = f.sub(f["end"], start);
  if (f.argument("weight").is<ValueId>()) return f.replace(f.add(start, f.mul(distance, f["weight"])));
  std::optional<double> weight = f.number("weight");
  return weight && f.replace(f.add(start, f.mul(distance, *weight)));
}

bool decompose_heaviside(AtenBuilder& f) {
  ValueId x = f["self"], values = f["values"];
  ValueId step = f.cast(f.compare("gt", x, Argument(int64_t{0})), f.dtype(x));
  return f.replace(f.where(f.compare("eq", x, Argument(int64_t{0})), values, step));
}

bool decompose_hypot(AtenBuilder& f) {
  ValueId a = f["self"], b = f["other"];
  ValueId square = f.mul(a, a);
  return f.replace(f.sqrt(f.add(square, f.mul(b, b))));
}

bool decompose_logaddexp(AtenBuilder& f) {
  ValueId a = f["self"], b = f["other"];
  ValueId high = f.binary(aten::kMaximum, a, b);
  ValueId difference = f.neg(f.abs(f.sub(a, b)));
  // Two equal infinities have no difference.
  ValueId has_none = is_nan(f, difference);
  difference = f.where(has_none, f.scalar(0.0, f.dtype(difference)), difference);
  return f.replace(f.add(high, f.unary(aten::kLog1p, f.exp(difference))));
}

bool decompose_xlogy(AtenBuilder& f) {
  DType dtype = f.result().dtype;
  auto operand = [&](std::string_view name) {
    return f.argument(name).is<ValueId>() ? f.cast(f[name], dtype) : f.scalar(f.argument(name), dtype);
  };
  ValueId x = operand("self"), y = operand("other"), product = f.mul(x, f.log(y));
  ValueId is_zero = f.compare("eq", x, Argument(0.0));
  is_zero = f.bitwise_and(is_zero, f.compare("eq", y, y));
  return f.replace(f.where(is_zero, f.scalar(0.0, dtype), product));
}

bool decompose_copysign(AtenBuilder& f) {
  DType dtype = f.result().dtype;
  ValueId magnitude = f.abs(f.cast(f["self"], dtype)), sign = f.cast(f["other"], dtype);
  // 1 / x tells -0 from 0.
  ValueId is_zero = f.compare("eq", sign, Argument(0.0));
  ValueId is_negative = f.compare("lt", f.where(is_zero, f.reciprocal(sign), sign), Argument(0.0));
  return f.replace(f.where(is_negative, f.neg(magnitude), magnitude));
}

bool decompose_signbit(AtenBuilder& f) {
  ValueId x = f["self"];
  if (!is_float(f.dtype(x))) return f.replace(f.compare("lt", x, Argument(int64_t{0})));
  ValueId is_zero = f.compare("eq", x, Argument(0.0));
  ValueId shown = f.where(is_zero, f.reciprocal(x), x);
  return f.replace(f.compare("lt", shown, Argument(0.0)));
}

/// fmax, fmin: of a number and NaN, the number.
bool decompose_fmax(AtenBuilder& f) {
  ValueId a = f["self"], b = f["other"];
  bool is_max = f.op() == "aten.fmax.default";
  ValueId chosen = f.binary(is_max ? aten::kMaximum : aten::kMinimum, a, b);
  if (!is_float(f.dtype(chosen))) return f.replace(chosen);
  chosen = f.where(is_nan(f, a), b, chosen);
  return f.replace(f.where(is_nan(f, b), a, chosen));
}

/// |a - b| <= atol + rtol * |b|
bool decompose_isclose(AtenBuilder& f) {
  std::optional<double> rtol = f.number("rtol"), atol = f.number("atol");
  if (!rtol || !atol) return false;
  DType dtype = is_float(f.dtype(f["self"])) ? f.dtype(f["self"]) : DType::kF32;
  ValueId a = f.cast(f["self"], dtype), b = f.cast(f["other"], dtype);
  ValueId allowed = f.add(f.mul(f.abs(b), *rtol), *atol), distance = f.abs(f.sub(a, b));
  ValueId is_near = f.compare("le", distance, allowed);
  is_near = f.bitwise_and(is_near, f.compare("lt", distance, Argument(kInfinity)));
  ValueId is_close = f.binary(aten::kBitwiseOrTensor, is_near, f.compare("eq", a, b));
  if (f.flag("equal_nan")) {
    ValueId both = is_nan(f, a);
    both = f.bitwise_and(both, is_nan(f, b));
    is_close = f.binary(aten::kBitwiseOrTensor, is_close, both);
  }
  return f.replace(is_close);
}

/// The angle of a point, which an arc tangent knows up to half a turn.
bool decompose_atan2(AtenBuilder& f) {
  constexpr std::string_view kAtan = aten::kAtan;
  ValueId y = as_result(f, "self"), x = as_result(f, "other");
  ValueId angle = f.unary(kAtan, f.div(y, x));
  // -0 is below 0 here.
  ValueId is_below = f.compare("lt", y, Argument(0.0));
  is_below = f.binary(aten::kBitwiseOrTensor, is_below, f.compare("lt", f.reciprocal(y), Argument(0.0)));
  auto constant = [&](double value) { return f.scalar(value, f.dtype(angle)); };
  ValueId back = constant(-std::numbers::pi);
  ValueId half_turn = f.where(is_below, back, constant(std::numbers::pi));
  ValueId is_left = f.compare("lt", x, Argument(0.0));
  ValueId result = f.where(is_left, f.add(angle, half_turn), angle);
  ValueId is_origin = f.compare("eq", x, Argument(0.0));
  is_origin = f.bitwise_and(is_origin, f.compare("eq", y, Argument(0.0)));
  return f.replace(f.where(is_origin, constant(0), result));
}

/// A left shift is a product, a right shift a quotient rounded down.
bool decompose_shift(AtenBuilder& f) {
  bool is_left = f.op().starts_with("aten.bitwise_left_shift");
  ValueId x = as_result(f, "self");
  if (f.argument("other").is<ValueId>()) {
    ValueId factor = power_of_two(f, as_result(f, "other"));
    return f.replace(is_left ? f.mul(x, factor) : whole_quotient(f, x, factor));
  }
  std::optional<int64_t> places = f.integer("other");
  if (!places || *places < 0 || *places > 62) return false;
  int64_t factor = int64_t{1} << *places;
  return f.replace(is_left ? f.mul_integer(x, factor) : whole_quotient(f, x, factor));
}

bool decompose_round_decimals(AtenBuilder& f) {
  std::optional<int64_t> decimals = f.integer("decimals");
  if (!decimals) return false;
  constexpr std::string_view kRound = aten::kRound;
  double factor = std::pow(10.0, static_cast<double>(std::abs(*decimals)));
  ValueId x = f["self"];
  if (!is_float(f.dtype(x))) return false;
  auto divided = [&](ValueId by) {
    return f.node(aten::kDivScalar, {{"self", by}, {"other", factor}}, f.dtype(x), f.shape(x));
  };
  if (*decimals < 0) return f.replace(f.mul(f.unary(kRound, divided(x)), factor));
  return f.replace(divided(f.unary(kRound, f.mul(x, factor))));
}

bool decompose_float_power(AtenBuilder& f) {
  if (!f.number("exponent")) return false;
  ValueId x = as_result(f, "self");
  return f.replace(
      f.node(aten::kPowTensorScalar, {{"self", x}, {"exponent", f.argument("exponent")}}, f.dtype(x), f.shape(x)));
}

bool decompose_masked_fill_tensor(AtenBuilder& f) {
  const TensorType result = f.result();
  ValueId value = f.cast(f["value"], result.dtype);
  return f.replace(f.where(f["mask"], value, f["self"]));
}

constexpr RewriteRule kArithmeticRules[] = {
    {.op = "aten.exp2.default", .name = "decompose-exp2", .apply = write<decompose_exp2>},
    {.op = "aten.expm1.default", .name = "decompose-expm1", .apply = write<decompose_expm1>},
    {.op = "aten.log1p.default", .name = "decompose-log1p", .apply = write<decompose_log1p>},
    {.op = "aten.log2.default", .name = "decompose-log", .apply = write<decompose_log2>},
    {.op = "aten.log10.default", .name = "decompose-log", .apply = write<decompose_log10>},
    {.op = "aten.rsqrt.default", .name = "decompose-rsqrt", .apply = write<decompose_rsqrt>},
    {.op = "aten.erfc.default", .name = "decompose-erfc", .apply = write<decompose_erfc>},
    {.op = "aten.erfinv.default", .name = "decompose-erfinv", .apply = write<decompose_erfinv>},
    {.op = "aten.isfinite.default", .name = "decompose-isfinite", .apply = write<decompose_isfinite>},
    {.op = "aten.isposinf.default", .name = "decompose-is-infinity", .apply = write<decompose_is_infinity>},
    {.op = "aten.isneginf.default", .name = "decompose-is-infinity", .apply = write<decompose_is_infinity>},
    {.op = "aten.nan_to_num.default", .name = "decompose-nan-to-num", .apply = write<decompose_nan_to_num>},
    {.op = "aten.trunc.default", .name = "decompose-trunc", .apply = write<decompose_trunc>},
    {.op = "aten.frac.default", .name = "decompose-frac", .apply = write<decompose_frac>},
    {.op = "aten.sign.default", .name = "decompose-sign", .apply = write<decompose_sign>},
    {.op = "aten.remainder.Tensor", .name = "decompose-remainder", .apply = write<decompose_remainder>},
    {.op = "aten.remainder.Scalar", .name = "decompose-remainder", .apply = write<decompose_remainder>},
    {.op = "_operator.mod", .name = "decompose-remainder", .apply = write<decompose_size_remainder>},
    {.op = "aten.deg2rad.default", .name = "decompose-degrees", .apply = write<decompose_deg2rad>},
    {.op = "aten.rad2deg.default", .name = "decompose-degrees", .apply = write<decompose_rad2deg>},
    {.op = "aten.lerp.Scalar", .name = "decompose-lerp", .apply = write<decompose_lerp>},
    {.op = "aten.lerp.Tensor", .name = "decompose-lerp", .apply = write<decompose_lerp>},
    {.op = "aten.heaviside.default", .name = "decompose-heaviside", .apply = write<decompose_heaviside>},
    {.op = "aten.hypot.default", .name = "decompose-hypot", .apply = write<decompose_hypot>},
    {.op = "aten.logaddexp.default", .name = "decompose-logaddexp", .apply = write<decompose_logaddexp>},
    {.op = "aten.xlogy.Tensor", .name = "decompose-xlogy", .apply = write<decompose_xlogy>},
    {.op = "aten.xlogy.Scalar_Other", .name = "decompose-xlogy", .apply = write<decompose_xlogy>},
    {.op = "aten.xlogy.Scalar_Self", .name = "decompose-xlogy", .apply = write<decompose_xlogy>},
    {.op = "aten.copysign.Tensor", .name = "decompose-copysign", .apply = write<decompose_copysign>},
    {.op = "aten.signbit.default", .name = "decompose-signbit", .apply = write<decompose_signbit>},
    {.op = "aten.fmax.default", .name = "decompose-fmax", .apply = write<decompose_fmax>},
    {.op = "aten.fmin.default", .name = "decompose-fmax", .apply = write<decompose_fmax>},
    {.op = "aten.isclose.default", .name = "decompose-isclose", .apply = write<decompose_isclose>},
    {.op = "aten.atan2.default", .name = "decompose-atan2", .apply = write<decompose_atan2>},
    {.op = "aten.bitwise_left_shift.Tensor", .name = "decompose-shift", .apply = write<decompose_shift>},
    {.op = "aten.bitwise_left_shift.Tensor_Scalar", .name = "decompose-shift", .apply = write<decompose_shift>},
    {.op = "aten.bitwise_right_shift.Tensor", .name = "decompose-shift", .apply = write<decompose_shift>},
    {.op = "aten.bitwise_right_shift.Tensor_Scalar", .name = "decompose-shift", .apply = write<decompose_shift>},
    {.op = "aten.round.decimals", .name = "decompose-round", .apply = write<decompose_round_decimals>},
    {.op = "aten.float_power.Tensor_Scalar", .name = "decompose-power", .apply = write<decompose_float_power>},
    {.op = "aten.masked_fill.Tensor", .name = "decompose-masked-fill", .apply = write<decompose_masked_fill_tensor>},
};

}  // namespace

std::span<const RewriteRule> arithmetic() { return kArithmeticRules; }

}  // namespace argosy::decompose
