#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// Both operands of a binary op in the type of its result.
std::pair<Ref, Ref> operands(const NodeTranslator& e) {
  DType dtype = e.result().dtype;
  return {e.operand("self", dtype), e.operand("other", dtype)};
}

// add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor; sub alike
// rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
void emit_sum(const NodeTranslator& e, const Translation& row) {
  DType dtype = e.result().dtype;
  auto [self, other] = operands(e);
  if (dtype == DType::kBool) return e.yield(e.node("Or", {self, other}));
  bool is_reversed = row.op.starts_with("aten.rsub");
  Ref& scaled = is_reversed ? self : other;
  if (e.constant_number("alpha") != 1.0) scaled = e.mul(scaled, e.scalar("alpha", dtype));
  e.yield(is_reversed ? e.sub(other, self) : e.node(row.onnx_op, {self, other}));
}

// mul.Tensor(Tensor self, Tensor other) -> Tensor
void emit_mul(const NodeTranslator& e, const Translation&) {
  auto [self, other] = operands(e);
  e.yield(e.node(e.result().dtype == DType::kBool ? "And" : "Mul", {self, other}));
}

// maximum(Tensor self, Tensor other) -> Tensor and others of two tensors of one type
void emit_binary(const NodeTranslator& e, const Translation& row) {
  auto [self, other] = operands(e);
  e.yield(e.node(row.onnx_op, {self, other}));
}

/// a // b rounded down, or towards zero. ONNX divides integers towards zero.
Ref rounded_quotient(const NodeTranslator& e, Ref a, Ref b, DType dtype, bool is_floor) {
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
void emit_div(const NodeTranslator& e, const Translation&) {
  auto [self, other] = operands(e);
  if (!e.has("rounding_mode")) return e.yield(e.div(self, other));
  e.yield(rounded_quotient(e, self, other, e.result().dtype, e.text("rounding_mode") == "floor"));
}

// remainder.Tensor(Tensor self, Tensor other) -> Tensor: the sign of the divisor
void emit_remainder(const NodeTranslator& e, const Translation&) {
  auto [self, other] = operands(e);
  if (!is_float(e.result().dtype)) return e.yield(e.node("Mod", {self, other}));
  Ref rest = e.node("Mod", {self, other}, {{"fmod", int64_t{1}}});
  Ref zero = e.like(rest, 0);
  Ref signs_differ = e.node("Less", {e.mul(rest, e.node("Sign", {other})), zero});
  e.yield(e.node("Where", {signs_differ, e.add(rest, other), rest}));
}

// fmod.Tensor(Tensor self, Tensor other) -> Tensor: the sign of the dividend
void emit_fmod(const NodeTranslator& e, const Translation&) {
  auto [self, other] = operands(e);
  e.yield(e.node("Mod", {self, other}, {{"fmod", int64_t{1}}}));
}

// pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
// pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
// pow.Scalar(Scalar self, Tensor exponent) -> Tensor
void emit_pow(const NodeTranslator& e, const Translation&) {
  DType dtype = e.result().dtype;
  e.yield(e.node("Pow", {e.operand("self", dtype), e.operand("exponent", dtype)}));
}

/// The type in which two operands of a comparison are compared.
DType compared_type(const NodeTranslator& e) {
  DType own = e.type("self").dtype;
  const Argument& other = e.argument("other");
  if (other.is<double>() && !is_float(own)) return DType::kF32;
  if (own == DType::kBool && other.is<int64_t>()) return DType::kI64;
  return own;
}

// eq.Tensor(Tensor self, Tensor other) -> Tensor and all other comparisons
void emit_comparison(const NodeTranslator& e, const Translation& row) {
  DType dtype = compared_type(e);
  e.yield(e.node(row.onnx_op, {e.cast(e.tensor("self"), dtype), e.operand("other", dtype)}));
}

void emit_not_equal(const NodeTranslator& e, const Translation&) {
  DType dtype = compared_type(e);
  Ref equal = e.node("Equal", {e.cast(e.tensor("self"), dtype), e.operand("other", dtype)});
  e.yield(e.node("Not", {equal}));
}

// bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor; "And" and "BitwiseAnd" are two ops
void emit_bitwise(const NodeTranslator& e, const Translation& row) {
  auto [self, other] = operands(e);
  std::string name(row.onnx_op);
  e.yield(e.node(e.result().dtype == DType::kBool ? name : "Bitwise" + name, {self, other}));
}

// bitwise_not(Tensor self) -> Tensor
void emit_bitwise_not(const NodeTranslator& e, const Translation&) {
  e.yield(e.node(e.result().dtype == DType::kBool ? "Not" : "BitwiseNot", {e.tensor("self")}));
}

// where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
void emit_where(const NodeTranslator& e, const Translation&) {
  e.yield(e.node("Where", {e.tensor("condition"), e.tensor("self"), e.tensor("other")}));
}

// masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
void emit_masked_fill(const NodeTranslator& e, const Translation&) {
  DType dtype = e.result().dtype;
  Ref filled = e.node("Where", {e.tensor("mask"), e.operand("value", dtype), e.tensor("self")});
  e.yield(filled);
}

// clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor; with tensors as bounds alike
void emit_clamp(const NodeTranslator& e, const Translation&) {
  DType dtype = e.result().dtype;
  Ref value = e.cast(e.tensor("self"), dtype);
  if (e.has("min")) value = e.node("Max", {value, e.operand("min", dtype)});
  if (e.has("max")) value = e.node("Min", {value, e.operand("max", dtype)});
  e.yield(value);
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
    {"aten.remainder.Tensor", emit_remainder, {}, "Mod"},
    {"aten.remainder.Scalar", emit_remainder, {}, "Mod"},
    {"aten.fmod.Tensor", emit_fmod},
    {"aten.fmod.Scalar", emit_fmod},
    {"aten.pow.Tensor_Scalar", emit_pow},
    {"aten.pow.Tensor_Tensor", emit_pow},
    {"aten.pow.Scalar", emit_pow},
    {"aten.maximum.default", emit_binary, "Max"},
    {"aten.minimum.default", emit_binary, "Min"},
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
    {"aten.where.self", emit_where},
    {"aten.masked_fill.Scalar", emit_masked_fill},
    {"aten.clamp.default", emit_clamp},
    {"aten.clamp.Tensor", emit_clamp},
};

}  // namespace

std::span<const Translation> arithmetic_translations() { return kArithmetic; }

}  // namespace argosy::onnx
