#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// Powers that are products and roots, as torch computes them: exact, and without logarithms.
bool simplify_power(AtenBuilder& f) {
  std::optional<double> exponent = f.number("exponent");
  DType dtype = f.result().dtype;
  if (!exponent || is_complex(dtype)) return false;
  auto base = [&] { return f.cast(f["self"], dtype); };
  if (*exponent == 1) return f.replace(base());
  if (*exponent == 2 || *exponent == 3 || *exponent == 4) {
    ValueId x = base(), square = f.mul(x, x);
    return f.replace(*exponent == 2 ? square : f.mul(square, *exponent == 3 ? x : square));
  }
  if (!is_float(dtype)) return false;
  if (*exponent == 0.5) return f.replace(f.sqrt(base()));
  if (*exponent == -0.5) return f.replace(f.rsqrt(base()));
  if (*exponent == -1) return f.replace(f.reciprocal(base()));
  return false;
}

/// Adding 0, multiplying with 1.
bool drop_identity(AtenBuilder& f) {
  ValueId x = f["self"];
  const TensorType result = f.result();
  if (f.dtype(x) != result.dtype || f.shape(x) != result.shape) return false;
  bool is_sum = f.op() == "aten.add.Scalar" || f.op() == "aten.sub.Scalar";
  // -0.0 + 0 is 0.0.
  if (is_sum && is_float(result.dtype)) return false;
  return f.number("other") == (is_sum ? 0.0 : 1.0) && f.replace(x);
}

/// x & true is x.
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

/// A condition that is a bool, and branches that are tensors of the result's dtype.
bool normalise_where(AtenBuilder& f) {
  const TensorType result = f.result();
  if (is_complex(result.dtype)) return false;
  ValueId condition = f["condition"];
  auto is_tensor = [&](std::string_view name) {
    return f.argument(name).is<ValueId>() && f.graph()[f[name]].tensor() != nullptr;
  };
  auto is_normal = [&](std::string_view name) { return is_tensor(name) && f.dtype(f[name]) == result.dtype; };
  if (f.dtype(condition) == DType::kBool && is_normal("self") && is_normal("other")) return false;
  auto branch = [&](std::string_view name) {
    return is_tensor(name) ? f.cast(f[name], result.dtype) : f.scalar(f.argument(name), result.dtype);
  };
  return f.replace(
      f.node(aten::kWhereSelf,
             {{"condition", f.cast(condition, DType::kBool)}, {"self", branch("self")}, {"other", branch("other")}},
             result.dtype, result.shape));
}

/// sgn of real numbers is sign.
bool normalise_sign(AtenBuilder& f) {
  return !is_complex(f.dtype(f["self"])) && f.replace(f.unary(aten::kSign, f["self"]));
}

/// Rounding changes no integer.
bool drop_rounding(AtenBuilder& f) {
  DType dtype = f.dtype(f["self"]);
  return !is_float(dtype) && !is_complex(dtype) && f.replace(f["self"]);
}

/// Integers are finite and never NaN.
bool drop_float_test(AtenBuilder& f) {
  ValueId x = f["self"];
  if (is_float(f.dtype(x)) || is_complex(f.dtype(x))) return false;
  return f.replace(f.full(f.shape(x), f.op() == "aten.isfinite.default", DType::kBool, {x}));
}

constexpr RewriteRule kNumbersRules[] = {
    {.op = "aten.pow.Tensor_Scalar", .name = "simplify-power", .apply = write<simplify_power>},
    {.op = "aten.add.Scalar", .name = "drop-identity", .apply = write<drop_identity>},
    {.op = "aten.sub.Scalar", .name = "drop-identity", .apply = write<drop_identity>},
    {.op = "aten.mul.Scalar", .name = "drop-identity", .apply = write<drop_identity>},
    {.op = "aten.div.Scalar", .name = "drop-identity", .apply = write<drop_identity>},
    {.op = "aten.bitwise_and.Tensor", .name = "drop-true", .apply = write<drop_true>},
    {.op = "aten.where.self", .name = "normalise-where", .apply = write<normalise_where>},
    {.op = "aten.where.Scalar", .name = "normalise-where", .apply = write<normalise_where>},
    {.op = "aten.where.ScalarOther", .name = "normalise-where", .apply = write<normalise_where>},
    {.op = "aten.where.ScalarSelf", .name = "normalise-where", .apply = write<normalise_where>},
    {.op = "aten.sgn.default", .name = "normalise-sign", .apply = write<normalise_sign>},
    {.op = "aten.floor.default", .name = "drop-rounding", .apply = write<drop_rounding>},
    {.op = "aten.ceil.default", .name = "drop-rounding", .apply = write<drop_rounding>},
    {.op = "aten.round.default", .name = "drop-rounding", .apply = write<drop_rounding>},
    {.op = "aten.trunc.default", .name = "drop-rounding", .apply = write<drop_rounding>},
    {.op = "aten.isnan.default", .name = "drop-float-test", .apply = write<drop_float_test>},
    {.op = "aten.isinf.default", .name = "drop-float-test", .apply = write<drop_float_test>},
    {.op = "aten.isfinite.default", .name = "drop-float-test", .apply = write<drop_float_test>},
    {.op = "aten.isposinf.default", .name = "drop-float-test", .apply = write<drop_float_test>},
    {.op = "aten.isneginf.default", .name = "drop-float-test", .apply = write<drop_float_test>},
};

}  // namespace

std::span<const RewriteRule> number_rules() { return kNumbersRules; }

}  // namespace argosy
