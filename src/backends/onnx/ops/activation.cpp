#include <cmath>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

/// The operand of a function of one number, in the type that the result is computed in.
Ref self(const NodeTranslator& e) {
  DType dtype = e.result().dtype;
  Ref value = e.tensor("self");
  return dtype == DType::kBool ? value : e.cast(value, dtype);
}

// exp(Tensor self) -> Tensor and all others that ONNX has by themselves
void emit_function(const NodeTranslator& e, const Translation& row) { e.yield(e.node(row.onnx_op, {self(e)})); }

// sign(Tensor self) -> Tensor; of NaN it is 0
void emit_sign(const NodeTranslator& e, const Translation&) {
  Ref x = self(e);
  Ref sign = e.node("Sign", {x});
  bool is_float = kind_of(e.result().dtype) == DTypeKind::kFloat;
  e.yield(is_float ? e.node("Where", {e.node("IsNaN", {x}), e.like(x, 0), sign}) : sign);
}

// gelu(Tensor self, *, str approximate='none') -> Tensor
void emit_gelu(const NodeTranslator& e, const Translation&) {
  Ref x = self(e);
  std::string approximate = e.text("approximate");
  if (e.opset() >= 20) return e.yield(e.node("Gelu", {x}, {{"approximate", approximate}}));
  Ref inner;
  if (approximate == "tanh") {
    Ref square = e.mul(x, x), scaled = e.mul(x, e.like(x, 0.044715)), cube = e.mul(square, scaled);
    inner = e.node("Tanh", {e.mul(e.add(x, cube), e.like(x, std::sqrt(2.0 / M_PI)))});
  } else {
    inner = e.node("Erf", {e.mul(x, e.like(x, M_SQRT1_2))});
  }
  Ref half = e.mul(x, e.like(x, 0.5));
  e.yield(e.mul(half, e.add(inner, e.like(x, 1))));
}

// softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor: linear above the threshold
void emit_softplus(const NodeTranslator& e, const Translation&) {
  Ref x = self(e);
  double beta = e.real("beta"), threshold = e.real("threshold");
  Ref scaled = beta == 1.0 ? x : e.mul(x, e.like(x, beta));
  Ref soft = e.node("Softplus", {scaled});
  if (beta != 1.0) soft = e.div(soft, e.like(x, beta));
  // Beyond 20 there is no difference in f32.
  if (threshold < 20) soft = e.node("Where", {e.node("Greater", {scaled, e.like(x, threshold)}), x, soft});
  e.yield(soft);
}

// leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor
void emit_leaky_relu(const NodeTranslator& e, const Translation&) {
  e.yield(e.node("LeakyRelu", {self(e)}, {{"alpha", static_cast<float>(e.real("negative_slope"))}}));
}

// elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor: what is not positive is
// scale * alpha * (exp(input_scale * x) - 1)
void emit_elu(const NodeTranslator& e, const Translation&) {
  double alpha = e.real("alpha"), scale = e.real("scale"), input_scale = e.real("input_scale");
  if (input_scale <= 0) e.decline("an input_scale that is not positive");
  auto times = [&](Ref x, double factor) { return factor == 1.0 ? x : e.mul(x, e.like(x, factor)); };
  Ref elu = e.node("Elu", {times(self(e), input_scale)}, {{"alpha", static_cast<float>(alpha * input_scale)}});
  e.yield(times(elu, scale / input_scale));
}

// hardsigmoid(Tensor self) -> Tensor = clamp(x / 6 + 0.5, 0, 1)
void emit_hard_sigmoid(const NodeTranslator& e, const Translation&) {
  e.yield(e.node("HardSigmoid", {self(e)}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}}));
}

constexpr Translation kActivation[] = {
    {"aten.abs.default", emit_function, "Abs"},
    {"aten.neg.default", emit_function, "Neg"},
    {"aten.sign.default", emit_sign, {}, "Sign"},
    {"aten.exp.default", emit_function, "Exp"},
    {"aten.log.default", emit_function, "Log"},
    {"aten.sqrt.default", emit_function, "Sqrt"},
    {"aten.reciprocal.default", emit_function, "Reciprocal"},
    {"aten.sin.default", emit_function, "Sin"},
    {"aten.cos.default", emit_function, "Cos"},
    {"aten.tan.default", emit_function, "Tan"},
    {"aten.asin.default", emit_function, "Asin"},
    {"aten.acos.default", emit_function, "Acos"},
    {"aten.atan.default", emit_function, "Atan"},
    {"aten.sinh.default", emit_function, "Sinh"},
    {"aten.cosh.default", emit_function, "Cosh"},
    {"aten.asinh.default", emit_function, "Asinh"},
    {"aten.acosh.default", emit_function, "Acosh"},
    {"aten.atanh.default", emit_function, "Atanh"},
    {"aten.tanh.default", emit_function, "Tanh"},
    {"aten.sigmoid.default", emit_function, "Sigmoid"},
    {"aten.relu.default", emit_function, "Relu"},
    {"aten.erf.default", emit_function, "Erf"},
    {"aten.floor.default", emit_function, "Floor"},
    {"aten.ceil.default", emit_function, "Ceil"},
    {"aten.round.default", emit_function, "Round"},
    {"aten.isnan.default", emit_function, "IsNaN"},
    {"aten.isinf.default", emit_function, "IsInf"},
    {"aten.gelu.default", emit_gelu},
    {"aten.softplus.default", emit_softplus, {}, "Softplus"},
    {"aten.leaky_relu.default", emit_leaky_relu},
    {"aten.elu.default", emit_elu},
    {"aten.hardsigmoid.default", emit_hard_sigmoid, {}, "HardSigmoid"},
    {"aten.hardswish.default", emit_function, "HardSwish", "HardSwish"},
};

}  // namespace

std::span<const Translation> activation_translations() { return kActivation; }

}  // namespace argosy::onnx
