#include <cmath>
#include <limits>

#include "backends/onnx/translations.h"

namespace argosy::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The operand of a function of one number, in the type that the result is computed in.
Ref self(const Emitter& e) {
  DType dtype = e.result().dtype;
  Ref value = e.tensor("self");
  return dtype == DType::kBool ? value : e.cast(value, dtype);
}

// exp(Tensor self) -> Tensor and all others that ONNX has by themselves
void emit_function(const Emitter& e, const Translation& row) { e.yield(e.node(row.onnx_op, {self(e)})); }

// sign(Tensor self) -> Tensor; of NaN it is 0
void emit_sign(const Emitter& e, const Translation&) {
  Ref x = self(e);
  Ref sign = e.node("Sign", {x});
  bool is_float = kind_of(e.result().dtype) == DTypeKind::kFloat;
  e.yield(is_float ? e.node("Where", {e.node("IsNaN", {x}), e.like(x, 0), sign}) : sign);
}

// deg2rad(Tensor self) -> Tensor, rad2deg alike
void emit_angle(const Emitter& e, const Translation& row) {
  Ref x = self(e);
  e.yield(e.mul(x, e.like(x, row.op == "aten.deg2rad.default" ? M_PI / 180 : 180 / M_PI)));
}

// isposinf(Tensor self) -> Tensor, isneginf alike
void emit_infinity_test(const Emitter& e, const Translation& row) {
  double infinity = row.op == "aten.isposinf.default" ? kInfinity : -kInfinity;
  Ref x = e.tensor("self");
  e.yield(e.node("Equal", {x, e.like(x, infinity)}));
}

// round.decimals(Tensor self, *, int decimals) -> Tensor
void emit_round_decimals(const Emitter& e, const Translation&) {
  Ref x = self(e);
  Ref scale = e.like(x, std::pow(10.0, static_cast<double>(e.integer("decimals"))));
  e.yield(e.div(e.node("Round", {e.mul(x, scale)}), scale));
}

/// Of integers, what rounds to one, and what is infinite, is known.
void emit_rounding(const Emitter& e, const Translation& row) {
  bool is_float = kind_of(e.type("self").dtype) == DTypeKind::kFloat;
  e.yield(is_float ? e.node(row.onnx_op, {e.tensor("self")}) : e.tensor("self"));
}

void emit_float_test(const Emitter& e, const Translation& row) {
  Ref value = e.tensor("self");
  if (kind_of(e.type("self").dtype) != DTypeKind::kFloat) value = e.cast(value, DType::kF32);
  if (row.onnx_op != "IsFinite") return e.yield(e.node(row.onnx_op, {value}));
  Ref is_special = e.node("Or", {e.node("IsNaN", {value}), e.node("IsInf", {value})});
  e.yield(e.node("Not", {is_special}));
}

// trunc(Tensor self) -> Tensor
void emit_trunc(const Emitter& e, const Translation&) {
  Ref value = self(e);
  if (kind_of(e.result().dtype) != DTypeKind::kFloat) return e.yield(value);
  e.yield(e.mul(e.node("Sign", {value}), e.node("Floor", {e.node("Abs", {value})})));
}

// frac(Tensor self) -> Tensor
void emit_frac(const Emitter& e, const Translation&) {
  Ref value = self(e);
  Ref whole = e.mul(e.node("Sign", {value}), e.node("Floor", {e.node("Abs", {value})}));
  e.yield(e.sub(value, whole));
}

// rsqrt(Tensor self) -> Tensor
void emit_rsqrt(const Emitter& e, const Translation&) { e.yield(e.node("Reciprocal", {e.node("Sqrt", {self(e)})})); }

// log1p(Tensor self) -> Tensor, exact for small numbers: log(u) * x / (u - 1) with u = 1 + x
void emit_log1p(const Emitter& e, const Translation&) {
  Ref x = self(e), one = e.like(x, 1);
  Ref u = e.add(x, one), distance = e.sub(u, one);
  Ref exact = e.div(e.mul(e.node("Log", {u}), x), distance);
  Ref is_tiny = e.node("Equal", {distance, e.like(x, 0)});
  Ref is_infinite = e.node("Equal", {x, e.like(x, kInfinity)});
  e.yield(e.node("Where", {e.node("Or", {is_tiny, is_infinite}), x, exact}));
}

// expm1(Tensor self) -> Tensor = tanh(x / 2) * (exp(x) + 1)
void emit_expm1(const Emitter& e, const Translation&) {
  Ref x = self(e);
  Ref half = e.node("Tanh", {e.mul(x, e.like(x, 0.5))});
  e.yield(e.mul(half, e.add(e.node("Exp", {x}), e.like(x, 1))));
}

// log2(Tensor self) -> Tensor; log10 alike
void emit_log_of_base(const Emitter& e, const Translation& row) {
  Ref x = self(e);
  e.yield(e.mul(e.node("Log", {x}), e.like(x, row.op == "aten.log2.default" ? M_LOG2E : M_LOG10E)));
}

// exp2(Tensor self) -> Tensor
void emit_exp2(const Emitter& e, const Translation&) {
  Ref x = self(e);
  e.yield(e.node("Pow", {e.like(x, 2), x}));
}

// erfc(Tensor self) -> Tensor
void emit_erfc(const Emitter& e, const Translation&) {
  Ref x = self(e);
  e.yield(e.sub(e.like(x, 1), e.node("Erf", {x})));
}

// silu(Tensor self) -> Tensor
void emit_silu(const Emitter& e, const Translation&) {
  Ref x = self(e);
  e.yield(e.mul(x, e.node("Sigmoid", {x})));
}

// mish(Tensor self) -> Tensor
void emit_mish(const Emitter& e, const Translation&) {
  Ref x = self(e);
  e.yield(e.mul(x, e.node("Tanh", {e.node("Softplus", {x})})));
}

// gelu(Tensor self, *, str approximate='none') -> Tensor
void emit_gelu(const Emitter& e, const Translation&) {
  Ref x = self(e);
  std::string approximate = e.text("approximate");
  if (e.opset() >= 20) return e.yield(e.node("Gelu", {x}, {{"approximate", approximate}}));
  Ref inner;
  if (approximate == "tanh") {
    Ref cube = e.mul(e.mul(x, x), e.mul(x, e.like(x, 0.044715)));
    inner = e.node("Tanh", {e.mul(e.add(x, cube), e.like(x, std::sqrt(2.0 / M_PI)))});
  } else {
    inner = e.node("Erf", {e.mul(x, e.like(x, M_SQRT1_2))});
  }
  e.yield(e.mul(e.mul(x, e.like(x, 0.5)), e.add(inner, e.like(x, 1))));
}

// softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor: linear above the threshold
void emit_softplus(const Emitter& e, const Translation&) {
  Ref x = self(e);
  double beta = e.real("beta");
  Ref scaled = beta == 1.0 ? x : e.mul(x, e.like(x, beta));
  Ref soft = e.node("Softplus", {scaled});
  if (beta != 1.0) soft = e.div(soft, e.like(x, beta));
  e.yield(e.node("Where", {e.node("Greater", {scaled, e.like(x, e.real("threshold"))}), x, soft}));
}

// log_sigmoid(Tensor self) -> Tensor = -softplus(-x)
void emit_log_sigmoid(const Emitter& e, const Translation&) {
  e.yield(e.node("Neg", {e.node("Softplus", {e.node("Neg", {self(e)})})}));
}

// leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor
void emit_leaky_relu(const Emitter& e, const Translation&) {
  e.yield(e.node("LeakyRelu", {self(e)}, {{"alpha", static_cast<float>(e.real("negative_slope"))}}));
}

// elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor; celu and selu are special cases
void emit_elu(const Emitter& e, const Translation& row) {
  Ref x = self(e);
  double alpha = 1.6732632423543772848, scale = 1.0507009873554804934, input_scale = 1;
  if (row.op == "aten.elu.default") {
    alpha = e.real("alpha"), scale = e.real("scale"), input_scale = e.real("input_scale");
  } else if (row.op == "aten.celu.default") {
    alpha = e.real("alpha"), scale = 1, input_scale = 1 / alpha;
  }
  Ref below = e.sub(e.node("Exp", {e.mul(x, e.like(x, input_scale))}), e.like(x, 1));
  Ref result = e.node("Where", {e.node("Greater", {x, e.like(x, 0)}), x, e.mul(below, e.like(x, alpha))});
  e.yield(scale == 1.0 ? result : e.mul(result, e.like(x, scale)));
}

// hardsigmoid(Tensor self) -> Tensor = clamp(x + 3, 0, 6) / 6; hardswish multiplies it with x
void emit_hard_sigmoid(const Emitter& e, const Translation& row) {
  Ref x = self(e);
  Ref gate = e.node("Min", {e.node("Max", {e.add(x, e.like(x, 3)), e.like(x, 0)}), e.like(x, 6)});
  gate = e.div(gate, e.like(x, 6));
  e.yield(row.op == "aten.hardswish.default" ? e.mul(x, gate) : gate);
}

// prelu(Tensor self, Tensor weight) -> Tensor
void emit_prelu(const Emitter& e, const Translation&) {
  Ref x = self(e), weight = e.tensor("weight");
  if (e.rank("self") > 2) {
    Ints axes;
    for (int64_t axis = 1; axis < e.rank("self") - 1; ++axis) axes.push_back(axis);
    weight = e.unsqueeze(weight, axes);
  }
  e.yield(e.node("Where", {e.node("Greater", {x, e.like(x, 0)}), x, e.mul(x, weight)}));
}

// threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor; what is not a number stays so
void emit_threshold(const Emitter& e, const Translation&) {
  Ref x = self(e);
  DType dtype = e.result().dtype;
  Ref is_low = e.node("LessOrEqual", {x, e.scalar("threshold", dtype)});
  e.yield(e.node("Where", {is_low, e.scalar("value", dtype), x}));
}

// hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor; what is not a number stays so
void emit_hard_shrink(const Emitter& e, const Translation&) {
  Ref x = self(e);
  Ref is_small = e.node("LessOrEqual", {e.node("Abs", {x}), e.like(x, e.real("lambd"))});
  e.yield(e.node("Where", {is_small, e.like(x, 0), x}));
}

// softshrink(Tensor self, Scalar lambd=0.5) -> Tensor; what is not a number stays so
void emit_soft_shrink(const Emitter& e, const Translation&) {
  Ref x = self(e), zero = e.like(x, 0);
  double lambda = e.real("lambd");
  Ref above = e.node("Greater", {x, e.like(x, lambda)}), below = e.node("Less", {x, e.like(x, -lambda)});
  Ref low = e.node("Where", {below, e.add(x, e.like(x, lambda)), e.mul(x, zero)});
  e.yield(e.node("Where", {above, e.sub(x, e.like(x, lambda)), low}));
}

// nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor
void emit_nan_to_num(const Emitter& e, const Translation&) {
  Ref x = self(e);
  DType dtype = e.result().dtype;
  double largest = dtype == DType::kF64   ? std::numeric_limits<double>::max()
                   : dtype == DType::kF16 ? 65504.0
                                          : static_cast<double>(std::numeric_limits<float>::max());
  auto or_else = [&](std::string_view name, double otherwise) {
    return e.has(name) ? e.like(x, e.real(name)) : e.like(x, otherwise);
  };
  Ref result = e.node("Where", {e.node("IsNaN", {x}), or_else("nan", 0), x});
  result = e.node("Where", {e.node("Equal", {x, e.like(x, kInfinity)}), or_else("posinf", largest), result});
  e.yield(e.node("Where", {e.node("Equal", {x, e.like(x, -kInfinity)}), or_else("neginf", -largest), result}));
}

// erfinv(Tensor self) -> Tensor: a rational first guess in w = -log(1 - x * x), exact to 2e-3, then two steps of
// Newton's method, which square the error
void emit_erfinv(const Emitter& e, const Translation&) {
  Ref x = e.cast(self(e), DType::kF64), one = e.like(x, 1), size = e.node("Abs", {x});
  constexpr double kA = 0.147;
  Ref log = e.node("Log", {e.mul(e.sub(one, x), e.add(one, x))});
  Ref half = e.add(e.mul(log, e.like(x, 0.5)), e.like(x, 2 / (M_PI * kA)));
  Ref inner = e.sub(e.node("Sqrt", {e.sub(e.mul(half, half), e.mul(log, e.like(x, 1 / kA)))}), half);
  Ref y = e.node("Sqrt", {e.node("Max", {inner, e.like(x, 0)})});
  for (int step = 0; step < 2; ++step) {
    Ref error = e.sub(e.cast(e.node("Erf", {y}), DType::kF64), size);
    Ref slope = e.mul(e.node("Exp", {e.node("Neg", {e.mul(y, y)})}), e.like(x, 2 / std::sqrt(M_PI)));
    y = e.sub(y, e.div(error, slope));
  }
  Ref is_end = e.node("Equal", {size, one});
  y = e.node("Where", {is_end, e.like(x, kInfinity), y});
  e.yield(e.mul(e.node("Sign", {x}), y));
}

// logit(Tensor self, float? eps=None) -> Tensor
void emit_logit(const Emitter& e, const Translation&) {
  Ref x = self(e);
  if (e.has("eps")) {
    double eps = e.real("eps");
    x = e.node("Min", {e.node("Max", {x, e.like(x, eps)}), e.like(x, 1 - eps)});
  }
  e.yield(e.node("Log", {e.div(x, e.sub(e.like(x, 1), x))}));
}

constexpr Translation kActivation[] = {
    {"aten.abs.default", emit_function, "Abs"},
    {"aten.neg.default", emit_function, "Neg"},
    {"aten.sign.default", emit_sign},
    {"aten.sgn.default", emit_sign},
    {"aten.deg2rad.default", emit_angle},
    {"aten.rad2deg.default", emit_angle},
    {"aten.isposinf.default", emit_infinity_test},
    {"aten.isneginf.default", emit_infinity_test},
    {"aten.round.decimals", emit_round_decimals},
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
    {"aten.floor.default", emit_rounding, "Floor"},
    {"aten.ceil.default", emit_rounding, "Ceil"},
    {"aten.round.default", emit_rounding, "Round"},
    {"aten.trunc.default", emit_trunc},
    {"aten.frac.default", emit_frac},
    {"aten.isnan.default", emit_float_test, "IsNaN"},
    {"aten.isinf.default", emit_float_test, "IsInf"},
    {"aten.isfinite.default", emit_float_test, "IsFinite"},
    {"aten.rsqrt.default", emit_rsqrt},
    {"aten.log1p.default", emit_log1p},
    {"aten.expm1.default", emit_expm1},
    {"aten.log2.default", emit_log_of_base},
    {"aten.log10.default", emit_log_of_base},
    {"aten.exp2.default", emit_exp2},
    {"aten.erfc.default", emit_erfc},
    {"aten.silu.default", emit_silu},
    {"aten.mish.default", emit_mish},
    {"aten.gelu.default", emit_gelu},
    {"aten.softplus.default", emit_softplus},
    {"aten.log_sigmoid.default", emit_log_sigmoid},
    {"aten.leaky_relu.default", emit_leaky_relu},
    {"aten.elu.default", emit_elu},
    {"aten.celu.default", emit_elu},
    {"aten.selu.default", emit_elu},
    {"aten.hardsigmoid.default", emit_hard_sigmoid},
    {"aten.hardswish.default", emit_hard_sigmoid},
    {"aten.prelu.default", emit_prelu},
    {"aten.threshold.default", emit_threshold},
    {"aten.softshrink.default", emit_soft_shrink},
    {"aten.hardshrink.default", emit_hard_shrink},
    {"aten.nan_to_num.default", emit_nan_to_num},
    {"aten.logit.default", emit_logit},
    {"aten.erfinv.default", emit_erfinv},
};

}  // namespace

std::span<const Translation> activation_translations() { return kActivation; }

}  // namespace argosy::onnx
