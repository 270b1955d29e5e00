#include <cmath>
#include <limits>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

bool is_float(DType dtype) { return kind_of(dtype) == DTypeKind::kFloat; }

/// Both operands of a binary op in the type of its result.
std::pair<Ref, Ref> operands(const Emitter& e) {
  DType dtype = e.result().dtype;
  return {e.operand("self", dtype), e.operand("other", dtype)};
}

// add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor; sub alike
// rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
void emit_sum(const Emitter& e, const Translation& row) {
  DType dtype = e.result().dtype;
  auto [self, other] = operands(e);
  if (dtype == DType::kBool) return e.yield(e.node("Or", {self, other}));
  bool is_reversed = row.op.starts_with("aten.rsub");
  Ref& scaled = is_reversed ? self : other;
  if (e.constant_number("alpha") != 1.0) scaled = e.mul(scaled, e.scalar("alpha", dtype));
  e.yield(is_reversed ? e.sub(other, self) : e.node(row.onnx_op, {self, other}));
}

// mul.Tensor(Tensor self, Tensor other) -> Tensor
void emit_mul(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  e.yield(e.node(e.result().dtype == DType::kBool ? "And" : "Mul", {self, other}));
}

// maximum(Tensor self, Tensor other) -> Tensor and others of two tensors of one type
void emit_binary(const Emitter& e, const Translation& row) {
  auto [self, other] = operands(e);
  e.yield(e.node(row.onnx_op, {self, other}));
}

// fmax(Tensor self, Tensor other) -> Tensor: the other one where one is NaN
void emit_number_if_any(const Emitter& e, const Translation& row) {
  auto [self, other] = operands(e);
  Ref chosen = e.node(row.onnx_op, {self, other});
  chosen = e.node("Where", {e.node("IsNaN", {self}), other, chosen});
  e.yield(e.node("Where", {e.node("IsNaN", {other}), self, chosen}));
}

/// a // b rounded down, or towards zero. ONNX divides integers towards zero.
Ref rounded_quotient(const Emitter& e, Ref a, Ref b, DType dtype, bool is_floor) {
  if (is_float(dtype)) {
    Ref quotient = e.div(a, b);
    if (is_floor) return e.node("Floor", {quotient});
    Ref size = e.node("Floor", {e.node("Abs", {quotient})});
    return e.mul(e.node("Sign", {quotient}), size);
  }
  if (!is_floor) return e.div(a, b);
  return e.div(e.sub(a, e.node("Mod", {a, b})), b);
}

// div.Tensor(Tensor self, Tensor other) -> Tensor
// div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
void emit_div(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  if (!e.has("rounding_mode")) return e.yield(e.div(self, other));
  e.yield(rounded_quotient(e, self, other, e.result().dtype, e.text("rounding_mode") == "floor"));
}

// remainder.Tensor(Tensor self, Tensor other) -> Tensor: the sign of the divisor
void emit_remainder(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  if (!is_float(e.result().dtype)) return e.yield(e.node("Mod", {self, other}));
  Ref rest = e.node("Mod", {self, other}, {{"fmod", int64_t{1}}});
  Ref zero = e.like(rest, 0);
  Ref signs_differ = e.node("Less", {e.mul(rest, e.node("Sign", {other})), zero});
  e.yield(e.node("Where", {signs_differ, e.add(rest, other), rest}));
}

// fmod.Tensor(Tensor self, Tensor other) -> Tensor: the sign of the dividend
void emit_fmod(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  e.yield(e.node("Mod", {self, other}, {{"fmod", int64_t{1}}}));
}

// pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
// pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
// pow.Scalar(Scalar self, Tensor exponent) -> Tensor
void emit_pow(const Emitter& e, const Translation& row) {
  DType dtype = e.result().dtype;
  Ref base = e.operand("self", dtype);
  auto exponent = row.op == "aten.pow.Tensor_Scalar" ? e.constant_number("exponent") : std::nullopt;
  if (exponent == 1.0) return e.yield(base);
  if (exponent == 2.0) return e.yield(e.mul(base, base));
  if (exponent == 3.0) return e.yield(e.mul(e.mul(base, base), base));
  if (exponent == 0.5 && is_float(dtype)) return e.yield(e.node("Sqrt", {base}));
  if (exponent == -0.5) return e.yield(e.node("Reciprocal", {e.node("Sqrt", {base})}));
  if (exponent == -1.0) return e.yield(e.node("Reciprocal", {base}));
  e.yield(e.node("Pow", {base, e.operand("exponent", dtype)}));
}

/// The type in which two operands of a comparison are compared.
DType compared_type(const Emitter& e) {
  DType own = e.type("self").dtype;
  const Argument& other = e.argument("other");
  if (other.is<double>() && !is_float(own)) return DType::kF32;
  if (own == DType::kBool && other.is<int64_t>()) return DType::kI64;
  return own;
}

// eq.Tensor(Tensor self, Tensor other) -> Tensor and all other comparisons
void emit_comparison(const Emitter& e, const Translation& row) {
  DType dtype = compared_type(e);
  e.yield(e.node(row.onnx_op, {e.cast(e.tensor("self"), dtype), e.operand("other", dtype)}));
}

void emit_not_equal(const Emitter& e, const Translation&) {
  DType dtype = compared_type(e);
  Ref equal = e.node("Equal", {e.cast(e.tensor("self"), dtype), e.operand("other", dtype)});
  e.yield(e.node("Not", {equal}));
}

// bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor; "And" and "BitwiseAnd" are two ops
void emit_bitwise(const Emitter& e, const Translation& row) {
  auto [self, other] = operands(e);
  std::string name(row.onnx_op);
  e.yield(e.node(e.result().dtype == DType::kBool ? name : "Bitwise" + name, {self, other}));
}

// bitwise_not(Tensor self) -> Tensor
void emit_bitwise_not(const Emitter& e, const Translation&) {
  e.yield(e.node(e.result().dtype == DType::kBool ? "Not" : "BitwiseNot", {e.tensor("self")}));
}

// bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor: a product; to the right a quotient rounded
// down
void emit_shift(const Emitter& e, const Translation& row) {
  auto [self, other] = operands(e);
  DType dtype = e.result().dtype;
  Ref factor = e.node("Pow", {e.builder().scalar(int64_t{2}, dtype), other});
  e.yield(row.onnx_op == "Mul" ? e.mul(self, factor) : rounded_quotient(e, self, factor, dtype, true));
}

// where.self(Tensor condition, Tensor self, Tensor other) -> Tensor, and with numbers in place of either
void emit_where(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  e.yield(e.node("Where", {e.cast(e.tensor("condition"), DType::kBool), self, other}));
}

// masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
void emit_masked_fill(const Emitter& e, const Translation&) {
  DType dtype = e.result().dtype;
  Ref filled = e.node("Where", {e.tensor("mask"), e.operand("value", dtype), e.tensor("self")});
  e.yield(filled);
}

// clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor; with tensors as bounds alike
void emit_clamp(const Emitter& e, const Translation&) {
  DType dtype = e.result().dtype;
  Ref value = e.cast(e.tensor("self"), dtype);
  if (e.has("min")) value = e.node("Max", {value, e.operand("min", dtype)});
  if (e.has("max")) value = e.node("Min", {value, e.operand("max", dtype)});
  e.yield(value);
}

// lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor
void emit_lerp(const Emitter& e, const Translation&) {
  Ref start = e.tensor("self"), end = e.tensor("end");
  e.yield(e.add(start, e.mul(e.operand("weight", e.result().dtype), e.sub(end, start))));
}

// hypot(Tensor self, Tensor other) -> Tensor
void emit_hypot(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  e.yield(e.node("Sqrt", {e.add(e.mul(self, self), e.mul(other, other))}));
}

// xlogy.Tensor(Tensor self, Tensor other) -> Tensor: 0 where the factor is 0
void emit_xlogy(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  Ref zero = e.like(self, 0);
  e.yield(e.node("Where", {e.node("Equal", {self, zero}), zero, e.mul(self, e.node("Log", {other}))}));
}

// logaddexp(Tensor self, Tensor other) -> Tensor
void emit_logaddexp(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  Ref largest = e.node("Max", {self, other});
  Ref sum = e.add(e.node("Exp", {e.sub(self, largest)}), e.node("Exp", {e.sub(other, largest)}));
  e.yield(e.add(largest, e.node("Log", {sum})));
}

// isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor
void emit_isclose(const Emitter& e, const Translation&) {
  if (e.flag("equal_nan")) e.decline("equal_nan");
  DType dtype = e.type("self").dtype;
  Ref self = e.tensor("self"), other = e.operand("other", dtype);
  Ref allowed = e.add(e.mul(e.node("Abs", {other}), e.like(other, e.real("rtol"))), e.like(other, e.real("atol")));
  Ref is_near = e.node("LessOrEqual", {e.node("Abs", {e.sub(self, other)}), allowed});
  e.yield(e.node("Or", {e.node("Equal", {self, other}), is_near}));
}

// copysign.Tensor(Tensor self, Tensor other) -> Tensor
void emit_copysign(const Emitter& e, const Translation&) {
  auto [self, other] = operands(e);
  Ref zero = e.like(other, 0), size = e.node("Abs", {self});
  Ref is_below = e.node("Or", {e.node("Less", {other, zero}), e.node("Less", {e.node("Reciprocal", {other}), zero})});
  e.yield(e.node("Where", {is_below, e.node("Neg", {size}), size}));
}

// heaviside(Tensor self, Tensor values) -> Tensor
void emit_heaviside(const Emitter& e, const Translation&) {
  Ref self = e.tensor("self"), zero = e.like(self, 0);
  Ref step = e.cast(e.node("Greater", {self, zero}), e.result().dtype);
  e.yield(e.node("Where", {e.node("Equal", {self, zero}), e.tensor("values"), step}));
}

// atan2(Tensor self, Tensor other) -> Tensor
void emit_atan2(const Emitter& e, const Translation&) {
  auto [y, x] = operands(e);
  constexpr double kPi = 3.14159265358979323846;
  Ref zero = e.like(x, 0);
  Ref angle = e.node("Atan", {e.div(y, x)});
  // -0 is below 0 here.
  Ref is_below = e.node("Or", {e.node("Less", {y, zero}), e.node("Less", {e.node("Reciprocal", {y}), zero})});
  Ref turned = e.node("Where", {is_below, e.like(y, -kPi), e.like(y, kPi)});
  Ref result = e.node("Where", {e.node("Less", {x, zero}), e.add(angle, turned), angle});
  Ref is_origin = e.node("And", {e.node("Equal", {x, zero}), e.node("Equal", {y, zero})});
  e.yield(e.node("Where", {is_origin, zero, result}));
}

constexpr Translation kArithmetic[] = {
    {"aten.add.Tensor", emit_sum, "Add"},
    {"aten.add.Scalar", emit_sum, "Add"},
    {"aten.sub.Tensor", emit_sum, "Sub"},
    {"aten.sub.Scalar", emit_sum, "Sub"},
    {"aten.rsub.Scalar", emit_sum, "Sub"},
    {"aten.mul.Tensor", emit_mul},
    {"aten.mul.Scalar", emit_mul},
    {"aten.div.Tensor", emit_div},
    {"aten.div.Scalar", emit_div},
    {"aten.div.Tensor_mode", emit_div},
    {"aten.div.Scalar_mode", emit_div},
    {"aten.remainder.Tensor", emit_remainder},
    {"aten.remainder.Scalar", emit_remainder},
    {"aten.fmod.Tensor", emit_fmod},
    {"aten.fmod.Scalar", emit_fmod},
    {"aten.pow.Tensor_Scalar", emit_pow},
    {"aten.pow.Tensor_Tensor", emit_pow},
    {"aten.pow.Scalar", emit_pow},
    {"aten.maximum.default", emit_binary, "Max"},
    {"aten.minimum.default", emit_binary, "Min"},
    {"aten.fmax.default", emit_number_if_any, "Max"},
    {"aten.fmin.default", emit_number_if_any, "Min"},
    {"aten.eq.Tensor", emit_comparison, "Equal"},
    {"aten.eq.Scalar", emit_comparison, "Equal"},
    {"aten.lt.Tensor", emit_comparison, "Less"},
    {"aten.lt.Scalar", emit_comparison, "Less"},
    {"aten.le.Tensor", emit_comparison, "LessOrEqual"},
    {"aten.le.Scalar", emit_comparison, "LessOrEqual"},
    {"aten.gt.Tensor", emit_comparison, "Greater"},
    {"aten.gt.Scalar", emit_comparison, "Greater"},
    {"aten.ge.Tensor", emit_comparison, "GreaterOrEqual"},
    {"aten.ge.Scalar", emit_comparison, "GreaterOrEqual"},
    {"aten.ne.Tensor", emit_not_equal},
    {"aten.ne.Scalar", emit_not_equal},
    {"aten.bitwise_and.Tensor", emit_bitwise, "And"},
    {"aten.bitwise_and.Scalar", emit_bitwise, "And"},
    {"aten.bitwise_or.Tensor", emit_bitwise, "Or"},
    {"aten.bitwise_or.Scalar", emit_bitwise, "Or"},
    {"aten.bitwise_xor.Tensor", emit_bitwise, "Xor"},
    {"aten.bitwise_xor.Scalar", emit_bitwise, "Xor"},
    {"aten.bitwise_not.default", emit_bitwise_not},
    {"aten.bitwise_left_shift.Tensor", emit_shift, "Mul"},
    {"aten.bitwise_left_shift.Tensor_Scalar", emit_shift, "Mul"},
    {"aten.__lshift__.Scalar", emit_shift, "Mul"},
    {"aten.bitwise_right_shift.Tensor", emit_shift, "Div"},
    {"aten.bitwise_right_shift.Tensor_Scalar", emit_shift, "Div"},
    {"aten.__rshift__.Scalar", emit_shift, "Div"},
    {"aten.where.self", emit_where},
    {"aten.where.ScalarOther", emit_where},
    {"aten.where.ScalarSelf", emit_where},
    {"aten.where.Scalar", emit_where},
    {"aten.masked_fill.Scalar", emit_masked_fill},
    {"aten.masked_fill.Tensor", emit_masked_fill},
    {"aten.clamp.default", emit_clamp},
    {"aten.clamp.Tensor", emit_clamp},
    {"aten.lerp.Scalar", emit_lerp},
    {"aten.lerp.Tensor", emit_lerp},
    {"aten.atan2.default", emit_atan2},
    {"aten.hypot.default", emit_hypot},
    {"aten.xlogy.Tensor", emit_xlogy},
    {"aten.logaddexp.default", emit_logaddexp},
    {"aten.isclose.default", emit_isclose},
    {"aten.copysign.Tensor", emit_copysign},
    {"aten.heaviside.default", emit_heaviside},
    {"aten.float_power.Tensor_Scalar", emit_pow},
};

}  // namespace

std::span<const Translation> arithmetic_translations() { return kArithmetic; }

}  // namespace argosy::onnx
