#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

bool decompose_silu(AtenBuilder& f) {
  ValueId x = f["self"];
  return is_float(f.dtype(x)) && f.replace(f.mul(x, f.sigmoid(x)));
}

bool decompose_hardsigmoid(AtenBuilder& f) {
  ValueId x = f["self"];
  return is_float(f.dtype(x)) && f.replace(f.mul(f.clamp(f.add(x, 3.0), 0.0, 6.0), 1.0 / 6));
}

bool decompose_hardswish(AtenBuilder& f) {
  ValueId x = f["self"];
  return is_float(f.dtype(x)) && f.replace(f.mul(x, f.mul(f.clamp(f.add(x, 3.0), 0.0, 6.0), 1.0 / 6)));
}

bool decompose_mish(AtenBuilder& f) {
  ValueId x = f["self"];
  return is_float(f.dtype(x)) && f.replace(f.mul(x, f.tanh(f.unary(aten::kSoftplus, x))));
}

/// log(1 + exp(beta * x)) / beta, which neither overflows nor loses small numbers.
bool decompose_softplus(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<double> beta = f.number("beta"), threshold = f.number("threshold");
  if (!is_float(f.dtype(x)) || !beta || *beta == 0 || !threshold) return false;
  ValueId rest = f.unary(aten::kLog1p, f.exp(f.neg(f.abs(f.mul(x, *beta)))));
  ValueId positive = f.unary(aten::kRelu, x);
  ValueId smooth = f.add(positive, f.mul(rest, 1 / *beta));
  // Beyond 20 there is no difference in f32.
  if (*threshold < 20) smooth = f.where(f.compare("gt", f.mul(x, *beta), Argument(*threshold)), x, smooth);
  return f.replace(smooth);
}

bool decompose_log_sigmoid(AtenBuilder& f) {
  ValueId x = f["self"];
  return is_float(f.dtype(x)) && f.replace(f.neg(f.unary(aten::kSoftplus, f.neg(x))));
}

ValueId elu(AtenBuilder& f, ValueId x, double alpha, double scale, double input_scale) {
  return f.node(aten::kElu, {{"self", x}, {"alpha", alpha}, {"scale", scale}, {"input_scale", input_scale}}, f.dtype(x),
                f.shape(x));
}

bool decompose_selu(AtenBuilder& f) {
  ValueId x = f["self"];
  return is_float(f.dtype(x)) &&
         f.replace(elu(f, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1));
}

bool decompose_celu(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<double> alpha = f.number("alpha");
  if (!is_float(f.dtype(x)) || !alpha || *alpha == 0) return false;
  return f.replace(elu(f, x, *alpha, 1, 1 / *alpha));
}

bool decompose_prelu(AtenBuilder& f) {
  ValueId x = f["self"], weight = f["weight"];
  if (f.rank(weight) == 1 && f.size(weight, 0).as_integer() != 1 && f.rank(x) > 2) {
    Sizes shape(f.rank(x), f.one());
    shape[1] = f.size(weight, 0);
    weight = f.reshape(weight, shape);
  }
  ValueId is_positive = f.compare("gt", x, Argument(0.0));
  return f.replace(f.where(is_positive, x, f.mul(x, weight)));
}

bool decompose_hardshrink(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<double> width = f.number("lambd");
  if (!is_float(f.dtype(x)) || !width) return false;
  // Not |x| > width: NaN stays what it is.
  ValueId is_small = f.compare("le", f.abs(x), Argument(*width));
  return f.replace(f.where(is_small, f.scalar(0.0, f.dtype(x)), x));
}

bool decompose_softshrink(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<double> width = f.number("lambd");
  if (!is_float(f.dtype(x)) || !width) return false;
  return f.replace(f.sub(x, f.clamp(x, -*width, *width)));
}

bool decompose_threshold(AtenBuilder& f) {
  ValueId x = f["self"];
  std::optional<double> value = f.number("value");
  if (!value) return false;
  ValueId is_low = f.compare("le", x, f.argument("threshold"));
  return f.replace(f.where(is_low, f.scalar(f.argument("value"), f.dtype(x)), x));
}

/// log(x / (1 - x))
bool decompose_logit(AtenBuilder& f) {
  ValueId x = f.cast(f["self"], f.result().dtype);
  if (f.has("eps")) {
    std::optional<double> eps = f.number("eps");
    if (!eps) return false;
    x = f.clamp(x, *eps, 1 - *eps);
  }
  ValueId rest = f.node(aten::kRsubScalar, {{"self", x}, {"other", 1.0}}, f.dtype(x), f.shape(x));
  return f.replace(f.log(f.div(x, rest)));
}

/// x, times a factor where it is negative; in evaluation the factor is the mean of its random range.
bool decompose_rrelu(AtenBuilder& f) {
  std::optional<double> lower = f.number("lower"), upper = f.number("upper");
  if (f.flag("training") || !lower || !upper) return false;
  ValueId x = f["self"];
  ValueId is_positive = f.compare("gt", x, Argument(0.0));
  return f.replace(f.where(is_positive, x, f.mul(x, (*lower + *upper) / 2)));
}

constexpr RewriteRule kActivationRules[] = {
    {.op = "aten.silu.default", .name = "decompose-silu", .apply = write<decompose_silu>},
    {.op = "aten.hardsigmoid.default", .name = "decompose-hardsigmoid", .apply = write<decompose_hardsigmoid>},
    {.op = "aten.hardswish.default", .name = "decompose-hardswish", .apply = write<decompose_hardswish>},
    {.op = "aten.mish.default", .name = "decompose-mish", .apply = write<decompose_mish>},
    {.op = "aten.softplus.default", .name = "decompose-softplus", .apply = write<decompose_softplus>},
    {.op = "aten.log_sigmoid.default", .name = "decompose-log-sigmoid", .apply = write<decompose_log_sigmoid>},
    {.op = "aten.selu.default", .name = "decompose-selu", .apply = write<decompose_selu>},
    {.op = "aten.celu.default", .name = "decompose-celu", .apply = write<decompose_celu>},
    {.op = "aten.prelu.default", .name = "decompose-prelu", .apply = write<decompose_prelu>},
    {.op = "aten.hardshrink.default", .name = "decompose-hardshrink", .apply = write<decompose_hardshrink>},
    {.op = "aten.softshrink.default", .name = "decompose-softshrink", .apply = write<decompose_softshrink>},
    {.op = "aten.threshold.default", .name = "decompose-threshold", .apply = write<decompose_threshold>},
    {.op = "aten.logit.default", .name = "decompose-logit", .apply = write<decompose_logit>},
    {.op = "aten.rrelu.default", .name = "decompose-rrelu", .apply = write<decompose_rrelu>},
};

}  // namespace

std::span<const RewriteRule> activation() { return kActivationRules; }

}  // namespace argosy::decompose
