#include <cmath>
#include <limits>
#include <numbers>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_float(AtenBuilder& f, ValueId x) { return kind_of(f.dtype(x)) == DTypeKind::kFloat; }

/// The result's dtype, which for integers is that of floats.
ValueId as_result(AtenBuilder& f, std::string_view operand) { return f.cast(f[operand], f.result().dtype); }

/// Powers that are products: they are exact, and a kernel need not take logarithms.
bool simplify_power(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<double> exponent = f.number("exponent");
  if (!exponent || f.dtype(x) != f.result().dtype) return false;
  if (*exponent == 1) return f.replace(x);
  if (*exponent == 2) return f.replace(f.mul(x, x));
  if (*exponent == 3) return f.replace(f.mul(f.mul(x, x), x));
  if (*exponent == 4) {
    ValueId square = f.mul(x, x);
    return f.replace(f.mul(square, square));
  }
  if (!is_float(f, x)) return false;
  if (*exponent == 0.5) return f.replace(f.sqrt(x));
  if (*exponent == -0.5) return f.replace(f.rsqrt(x));
  if (*exponent == -1) return f.replace(f.reciprocal(x));
  return false;
}

/// Adding 0, multiplying by 1; and with what is true everywhere.
bool drop_identity(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType result = f.result();
  if (f.dtype(x) != result.dtype || f.shape(x) != result.shape) return false;
  const std::string& name = f.op();
  bool is_sum = name == "aten.add.Scalar" || name == "aten.sub.Scalar";
  // -0.0 + 0 is 0.0.
  if (is_sum && is_float(f, x)) return false;
  if (f.number("other") != (is_sum ? 0.0 : 1.0)) return false;
  return f.replace(x);
}

bool drop_true(AtenBuilder& f) {
  const TensorType result = f.result();
  if (result.dtype != DType::kBool) return false;
  for (bool is_left : {true, false}) {
    ValueId constant = f[is_left ? "self" : "other"], kept = f[is_left ? "other" : "self"];
    const Node* full = f.made_by(constant, "aten.full.default");
    if (full == nullptr || f.dtype(kept) != DType::kBool || f.shape(kept) != result.shape) continue;
    const Argument& value = full->arguments[1];
    if (value == Argument(int64_t{1}) || value == Argument(true) || value == Argument(1.0)) return f.replace(kept);
  }
  return false;
}

bool decompose_exp2(AtenBuilder& f) { return f.replace(f.exp(f.mul(as_result(f, "self"), std::numbers::ln2))); }

bool decompose_erfc(AtenBuilder& f) {
  ValueId x = as_result(f, "self");
  return f.replace(f.add(f.neg(f.unary(aten::kErf, x)), 1.0));
}

/// Giles' approximation in single precision, one polynomial in the middle and one for the tails.
bool decompose_erfinv(AtenBuilder& f) {
  ValueId x = as_result(f, "self");
  auto polynomial = [&](ValueId w, std::initializer_list<double> factors) {
    ValueId value = f.mul(w, *factors.begin());
    for (const double* each = factors.begin() + 1; each + 1 != factors.end(); ++each) {
      value = f.mul(f.add(value, *each), w);
    }
    return f.add(value, *(factors.end() - 1));
  };
  // log1p(-x * x) loses nothing near 1, where (1 - x) * (1 + x) is exact enough.
  ValueId w = f.neg(f.unary(aten::kLog1p, f.neg(f.mul(x, x))));
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
  if (!is_float(f, x)) return f.replace(f.full(f.shape(x), true, DType::kBool, {x}));
  return f.replace(f.compare("lt", f.abs(x), Argument(kInfinity)));
}

bool decompose_is_infinity(AtenBuilder& f) {
  ValueId x = f["self"];
  if (!is_float(f, x)) return f.replace(f.full(f.shape(x), false, DType::kBool, {x}));
  double which = f.op() == "aten.isneginf.default" ? -kInfinity : kInfinity;
  return f.replace(f.compare("eq", x, Argument(which)));
}

double largest(DType dtype) {
  if (dtype == DType::kF64) return std::numeric_limits<double>::max();
  if (dtype == DType::kF16) return 65504;
  if (dtype == DType::kBF16) return 3.3895313892515355e38;
  return static_cast<double>(std::numeric_limits<float>::max());
}

bool decompose_nan_to_num(AtenBuilder& f) {
  ValueId x = f["self"];
  if (!is_float(f, x)) return f.replace(x);
  auto given = [&](std::string_view name, double otherwise) {
    return f.has(name) ? f.number(name).value_or(otherwise) : otherwise;
  };
  double limit = largest(f.dtype(x));
  auto constant = [&](double value) { return f.scalar(value, f.dtype(x)); };
  ValueId result = f.where(f.node(aten::kIsNan, {{"self", x}}, DType::kBool, f.shape(x)), constant(given("nan", 0)), x);
  result = f.where(f.compare("eq", x, Argument(kInfinity)), constant(given("posinf", limit)), result);
  return f.replace(f.where(f.compare("eq", x, Argument(-kInfinity)), constant(given("neginf", -limit)), result));
}

bool decompose_frac(AtenBuilder& f) { return f.replace(f.sub(f["self"], f.unary(aten::kTrunc, f["self"]))); }

/// The kernel keeps NaN, where torch gives 0.
bool decompose_sign(AtenBuilder& f) {
  ValueId x = f["self"];
  if (!is_float(f, x)) {
    bool is_sign = f.op() == "aten.sign.default";
    return !is_sign && kind_of(f.dtype(x)) != DTypeKind::kComplex && f.replace(f.unary(aten::kSign, x));
  }
  ValueId above = f.cast(f.compare("gt", x, Argument(0.0)), f.dtype(x));
  return f.replace(f.sub(above, f.cast(f.compare("lt", x, Argument(0.0)), f.dtype(x))));
}

/// The kernels give whole numbers the sign of what is divided, as C does.
bool decompose_remainder(AtenBuilder& f) {
  const TensorType result = f.result();
  if (kind_of(result.dtype) == DTypeKind::kFloat || kind_of(result.dtype) == DTypeKind::kComplex) return false;
  ValueId x = f.cast(f["self"], result.dtype);
  if (f.op() == "aten.remainder.Tensor") {
    ValueId y = f.cast(f["other"], result.dtype);
    ValueId quotient =
        f.node(aten::kDivTensorMode, {{"self", x}, {"other", y}, {"rounding_mode", std::string("floor")}}, result.dtype,
               result.shape);
    return f.replace(f.sub(x, f.mul(quotient, y)));
  }
  std::optional<int64_t> y = f.integer("other");
  if (!y || *y == 0) return false;
  ValueId quotient = f.node(aten::kDivScalarMode, {{"self", x}, {"other", *y}, {"rounding_mode", std::string("floor")}},
                            result.dtype, result.shape);
  return f.replace(f.sub(x, f.mul_integer(quotient, *y)));
}

/// Of sizes: the runtime's gives what is left the sign of what is divided, Python's that of the divisor.
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

/// The kernel takes one dtype.
bool cast_where(AtenBuilder& f) {
  const TensorType result = f.result();
  if (f.dtype(f["self"]) == result.dtype && f.dtype(f["other"]) == result.dtype) return false;
  return f.replace(f.node(aten::kWhere,
                          {{"condition", f["condition"]},
                           {"self", f.cast(f["self"], result.dtype)},
                           {"other", f.cast(f["other"], result.dtype)}},
                          result.dtype, result.shape));
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
  return f.replace(f.sqrt(f.add(f.mul(a, a), f.mul(b, b))));
}

bool decompose_logaddexp(AtenBuilder& f) {
  ValueId a = f["self"], b = f["other"];
  ValueId high = f.binary(aten::kMaximum, a, b);
  ValueId difference = f.neg(f.abs(f.sub(a, b)));
  return f.replace(f.add(high, f.unary(aten::kLog1p, f.exp(difference))));
}

bool decompose_xlogy(AtenBuilder& f) {
  DType dtype = f.result().dtype;
  ValueId x = f.cast(f["self"], dtype), y = f.cast(f["other"], dtype);
  ValueId product = f.mul(x, f.log(y));
  ValueId is_zero = f.compare("eq", x, Argument(0.0));
  is_zero = f.bitwise_and(is_zero, f.compare("eq", y, y));
  return f.replace(f.where(is_zero, f.scalar(0.0, dtype), product));
}

bool decompose_copysign(AtenBuilder& f) {
  DType dtype = f.result().dtype;
  ValueId magnitude = f.abs(f.cast(f["self"], dtype)), sign = f.cast(f["other"], dtype);
  // 1 / x tells -0 from 0.
  ValueId is_negative =
      f.compare("lt", f.where(f.compare("eq", sign, Argument(0.0)), f.reciprocal(sign), sign), Argument(0.0));
  return f.replace(f.where(is_negative, f.neg(magnitude), magnitude));
}

bool decompose_signbit(AtenBuilder& f) {
  ValueId x = f["self"];
  if (!is_float(f, x)) return f.replace(f.compare("lt", x, Argument(int64_t{0})));
  ValueId shown = f.where(f.compare("eq", x, Argument(0.0)), f.reciprocal(x), x);
  return f.replace(f.compare("lt", shown, Argument(0.0)));
}

/// fmax, fmin: of a number and NaN, the number.
bool decompose_fmax(AtenBuilder& f) {
  ValueId a = f["self"], b = f["other"];
  bool is_max = f.op() == "aten.fmax.default";
  ValueId chosen = f.binary(is_max ? aten::kMaximum : aten::kMinimum, a, b);
  chosen = f.where(f.compare("ne", a, a), b, chosen);
  return f.replace(f.where(f.compare("ne", b, b), a, chosen));
}

/// |a - b| <= atol + rtol * |b|
bool decompose_isclose(AtenBuilder& f) {
  std::optional<double> rtol = f.number("rtol"), atol = f.number("atol");
  if (!rtol || !atol || f.flag("equal_nan") || !is_float(f, f["self"])) return false;
  ValueId a = f["self"], b = f["other"];
  ValueId allowed = f.add(f.mul(f.abs(b), *rtol), *atol), distance = f.abs(f.sub(a, b));
  ValueId is_near = f.bitwise_and(f.compare("le", distance, allowed), f.compare("lt", distance, Argument(kInfinity)));
  return f.replace(f.binary(aten::kBitwiseOr, is_near, f.compare("eq", a, b)));
}

bool decompose_round_decimals(AtenBuilder& f) {
  std::optional<int64_t> decimals = f.integer("decimals");
  if (!decimals) return false;
  constexpr std::string_view kRound = "aten::round(Tensor self) -> Tensor";
  double factor = std::pow(10.0, static_cast<double>(std::abs(*decimals)));
  ValueId x = f["self"];
  ValueId scaled = f.unary(kRound, f.mul(x, *decimals >= 0 ? factor : 1 / factor));
  return f.replace(f.mul(scaled, *decimals >= 0 ? 1 / factor : factor));
}

bool decompose_float_power(AtenBuilder& f) {
  constexpr std::string_view kPow = "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor";
  if (!f.number("exponent")) return false;
  ValueId x = as_result(f, "self");
  return f.replace(f.node(kPow, {{"self", x}, {"exponent", f.argument("exponent")}}, f.dtype(x), f.shape(x)));
}

/// Python's operators on tensors of integers, by their names in the list of kernels.
bool rename_shift(AtenBuilder& f) {
  bool is_left = f.op().find("lshift") != std::string::npos;
  std::string schema = std::string("aten::bitwise_") + (is_left ? "left" : "right") +
                       "_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor";
  const TensorType result = f.result();
  return f.replace(f.node(schema, {{"self", f["self"]}, {"other", f.argument("other")}}, result.dtype, result.shape));
}

/// Both branches as tensors.
bool decompose_where(AtenBuilder& f) {
  const TensorType result = f.result();
  auto branch = [&](std::string_view name) {
    return f.argument(name).is<ValueId>() && f.graph()[f[name]].tensor() != nullptr
               ? f[name]
               : f.scalar(f.argument(name), result.dtype);
  };
  ValueId a = branch("self"), b = branch("other");
  return f.replace(
      f.node(aten::kWhere, {{"condition", f["condition"]}, {"self", a}, {"other", b}}, result.dtype, result.shape));
}

bool decompose_masked_fill_tensor(AtenBuilder& f) {
  const TensorType result = f.result();
  ValueId value = f.cast(f["value"], result.dtype);
  return f.replace(f.node(aten::kWhere, {{"condition", f["mask"]}, {"self", value}, {"other", f["self"]}}, result.dtype,
                          result.shape));
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.pow.Tensor_Scalar", .name = "simplify-power", .apply = write<simplify_power>},
    {.op = "aten.add.Scalar", .name = "drop-identity", .apply = write<drop_identity>},
    {.op = "aten.sub.Scalar", .name = "drop-identity", .apply = write<drop_identity>},
    {.op = "aten.mul.Scalar", .name = "drop-identity", .apply = write<drop_identity>},
    {.op = "aten.div.Scalar", .name = "drop-identity", .apply = write<drop_identity>},
    {.op = "aten.bitwise_and.Tensor", .name = "drop-true", .apply = write<drop_true>},
    {.op = "aten.exp2.default", .name = "decompose-exp2", .apply = write<decompose_exp2>},
    {.op = "aten.erfc.default", .name = "decompose-erfc", .apply = write<decompose_erfc>},
    {.op = "aten.erfinv.default", .name = "decompose-erfinv", .apply = write<decompose_erfinv>},
    {.op = "aten.isfinite.default", .name = "decompose-isfinite", .apply = write<decompose_isfinite>},
    {.op = "aten.isposinf.default", .name = "decompose-is-infinity", .apply = write<decompose_is_infinity>},
    {.op = "aten.isneginf.default", .name = "decompose-is-infinity", .apply = write<decompose_is_infinity>},
    {.op = "aten.nan_to_num.default", .name = "decompose-nan-to-num", .apply = write<decompose_nan_to_num>},
    {.op = "aten.frac.default", .name = "decompose-frac", .apply = write<decompose_frac>},
    {.op = "aten.sgn.default", .name = "decompose-sign", .apply = write<decompose_sign>},
    {.op = "aten.sign.default", .name = "decompose-sign", .apply = write<decompose_sign>},
    {.op = "aten.remainder.Tensor", .name = "decompose-remainder", .apply = write<decompose_remainder>},
    {.op = "aten.remainder.Scalar", .name = "decompose-remainder", .apply = write<decompose_remainder>},
    {.op = "_operator.mod", .name = "decompose-remainder", .apply = write<decompose_size_remainder>},
    {.op = "aten.where.self", .name = "cast-where", .apply = write<cast_where>},
    {.op = "aten.deg2rad.default", .name = "decompose-degrees", .apply = write<decompose_deg2rad>},
    {.op = "aten.rad2deg.default", .name = "decompose-degrees", .apply = write<decompose_rad2deg>},
    {.op = "aten.lerp.Scalar", .name = "decompose-lerp", .apply = write<decompose_lerp>},
    {.op = "aten.lerp.Tensor", .name = "decompose-lerp", .apply = write<decompose_lerp>},
    {.op = "aten.heaviside.default", .name = "decompose-heaviside", .apply = write<decompose_heaviside>},
    {.op = "aten.hypot.default", .name = "decompose-hypot", .apply = write<decompose_hypot>},
    {.op = "aten.logaddexp.default", .name = "decompose-logaddexp", .apply = write<decompose_logaddexp>},
    {.op = "aten.xlogy.Tensor", .name = "decompose-xlogy", .apply = write<decompose_xlogy>},
    {.op = "aten.copysign.Tensor", .name = "decompose-copysign", .apply = write<decompose_copysign>},
    {.op = "aten.signbit.default", .name = "decompose-signbit", .apply = write<decompose_signbit>},
    {.op = "aten.fmax.default", .name = "decompose-fmax", .apply = write<decompose_fmax>},
    {.op = "aten.fmin.default", .name = "decompose-fmax", .apply = write<decompose_fmax>},
    {.op = "aten.isclose.default", .name = "decompose-isclose", .apply = write<decompose_isclose>},
    {.op = "aten.round.decimals", .name = "decompose-round", .apply = write<decompose_round_decimals>},
    {.op = "aten.float_power.Tensor_Scalar", .name = "decompose-power", .apply = write<decompose_float_power>},
    {.op = "aten.__lshift__.Scalar", .name = "rename-shift", .apply = write<rename_shift>},
    {.op = "aten.__rshift__.Scalar", .name = "rename-shift", .apply = write<rename_shift>},
    {.op = "aten.where.Scalar", .name = "decompose-where", .apply = write<decompose_where>},
    {.op = "aten.where.ScalarOther", .name = "decompose-where", .apply = write<decompose_where>},
    {.op = "aten.where.ScalarSelf", .name = "decompose-where", .apply = write<decompose_where>},
    {.op = "aten.masked_fill.Tensor", .name = "decompose-masked-fill", .apply = write<decompose_masked_fill_tensor>},
};

}  // namespace

std::span<const RewriteRule> arithmetic() { return kRules; }

}  // namespace argosy::decompose
