#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

// add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor, sub alike
void emit_sum(const Emitter& e, const Translation& row) {
  DType dtype = e.result().dtype;
  Ref self = e.cast(e.tensor("self"), dtype), other = e.operand("other", dtype);
  if (dtype == DType::kBool) return e.yield(e.node("Or", {self, other}));
  if (e.has("alpha") && e.constant_number("alpha") != 1.0) other = e.mul(other, e.scalar("alpha", dtype));
  e.yield(e.node(row.onnx_op, {self, other}));
}

// mul.Tensor(Tensor self, Tensor other) -> Tensor
void emit_mul(const Emitter& e, const Translation&) {
  DType dtype = e.result().dtype;
  Ref self = e.cast(e.tensor("self"), dtype), other = e.operand("other", dtype);
  e.yield(e.node(dtype == DType::kBool ? "And" : "Mul", {self, other}));
}

constexpr Translation kArithmetic[] = {
    {"aten.add.Tensor", emit_sum, "Add"}, {"aten.add.Scalar", emit_sum, "Add"}, {"aten.sub.Tensor", emit_sum, "Sub"},
    {"aten.sub.Scalar", emit_sum, "Sub"}, {"aten.mul.Tensor", emit_mul},        {"aten.mul.Scalar", emit_mul},
};

}  // namespace

std::span<const Translation> arithmetic_translations() { return kArithmetic; }

}  // namespace argosy::onnx
