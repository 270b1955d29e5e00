#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// In alphabetical order.
constexpr Synonym kSynonyms[] = {
    {"aten.__and__.Scalar", "aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.__and__.Tensor", "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.__lshift__.Scalar", "aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.__lshift__.Tensor", "aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.__or__.Scalar", "aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.__or__.Tensor", "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.__rshift__.Scalar", "aten::bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.__rshift__.Tensor", "aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.__xor__.Scalar", "aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.__xor__.Tensor", "aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten._is_all_true.default", "aten::all(Tensor self) -> Tensor"},
    {"aten._is_any_true.default", "aten::any(Tensor self) -> Tensor"},
    {"aten._local_scalar_dense.default", "aten::item(Tensor self) -> Scalar"},
    {"aten.absolute.default", "aten::abs(Tensor self) -> Tensor"},
    {"aten.arccos.default", "aten::acos(Tensor self) -> Tensor"},
    {"aten.arccosh.default", "aten::acosh(Tensor self) -> Tensor"},
    {"aten.arcsin.default", "aten::asin(Tensor self) -> Tensor"},
    {"aten.arcsinh.default", "aten::asinh(Tensor self) -> Tensor"},
    {"aten.arctan.default", "aten::atan(Tensor self) -> Tensor"},
    {"aten.arctan2.default", "aten::atan2(Tensor self, Tensor other) -> Tensor"},
    {"aten.arctanh.default", "aten::atanh(Tensor self) -> Tensor"},
    {"aten.clip.Tensor", "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"},
    {"aten.clip.default", "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"},
    {"aten.divide.Scalar", "aten::div.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.divide.Scalar_mode", "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor"},
    {"aten.divide.Tensor", "aten::div.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.divide.Tensor_mode", "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"},
    {"aten.fix.default", "aten::trunc(Tensor self) -> Tensor"},
    {"aten.greater.Scalar", "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.greater.Tensor", "aten::gt.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.greater_equal.Scalar", "aten::ge.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.greater_equal.Tensor", "aten::ge.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.less.Scalar", "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.less.Tensor", "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.less_equal.Scalar", "aten::le.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.less_equal.Tensor", "aten::le.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.max.other", "aten::maximum(Tensor self, Tensor other) -> Tensor"},
    {"aten.min.other", "aten::minimum(Tensor self, Tensor other) -> Tensor"},
    {"aten.multiply.Scalar", "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.multiply.Tensor", "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.negative.default", "aten::neg(Tensor self) -> Tensor"},
    {"aten.not_equal.Scalar", "aten::ne.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.not_equal.Tensor", "aten::ne.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.special_erf.default", "aten::erf(Tensor self) -> Tensor"},
    {"aten.special_erfc.default", "aten::erfc(Tensor self) -> Tensor"},
    {"aten.special_exp2.default", "aten::exp2(Tensor self) -> Tensor"},
    {"aten.special_expit.default", "aten::sigmoid(Tensor self) -> Tensor"},
    {"aten.special_expm1.default", "aten::expm1(Tensor self) -> Tensor"},
    {"aten.special_log1p.default", "aten::log1p(Tensor self) -> Tensor"},
    {"aten.special_log_softmax.default",
     "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"},
    {"aten.special_logit.default", "aten::logit(Tensor self, float? eps=None) -> Tensor"},
    {"aten.special_logsumexp.default", "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"},
    {"aten.special_sinc.default", "aten::sinc(Tensor self) -> Tensor"},
    {"aten.special_softmax.default", "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"},
    {"aten.special_xlogy.default", "aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.special_xlogy.other_scalar", "aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor"},
    {"aten.special_xlogy.self_scalar", "aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor"},
    {"aten.subtract.Scalar", "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"},
    {"aten.subtract.Tensor", "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"},
    {"aten.true_divide.Scalar", "aten::div.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.true_divide.Tensor", "aten::div.Tensor(Tensor self, Tensor other) -> Tensor"},
};

constexpr auto kSynonymRules = synonym_rules(kSynonyms);

bool decompose_square(AtenBuilder& f) { return f.replace(f.mul(f["self"], f["self"])); }

/// other - alpha * self
bool normalise_rsub(AtenBuilder& f) {
  return f.become(aten::kSubTensor, {{"self", f["other"]}, {"other", f["self"]}, {"alpha", f.argument("alpha")}});
}

bool clamp(AtenBuilder& f, Argument min, Argument max) {
  bool is_by_tensors = min.is<ValueId>() || max.is<ValueId>();
  for (const Argument* bound : {&min, &max}) {
    const ValueId* value = bound->get_if<ValueId>();
    if (value != nullptr && f.graph()[*value].tensor() == nullptr) is_by_tensors = false;
  }
  return f.become(is_by_tensors ? aten::kClampTensor : aten::kClamp,
                  {{"self", f["self"]}, {"min", std::move(min)}, {"max", std::move(max)}});
}

bool normalise_clamp_min(AtenBuilder& f) { return clamp(f, f.argument("min"), None{}); }
bool normalise_clamp_max(AtenBuilder& f) { return clamp(f, None{}, f.argument("max")); }

bool normalise_hardtanh(AtenBuilder& f) {
  if (!f.knows("min_val")) return clamp(f, int64_t{0}, int64_t{6});
  return clamp(f, f.argument("min_val"), f.argument("max_val"));
}

/// Division that rounds down.
bool normalise_floor_divide(AtenBuilder& f) {
  bool is_by_number = f.op() == "aten.floor_divide.Scalar";
  return f.become(is_by_number ? aten::kDivScalarMode : aten::kDivTensorMode,
                  {{"self", f["self"]}, {"other", f.argument("other")}, {"rounding_mode", std::string("floor")}});
}

bool normalise_division(AtenBuilder& f) {
  if (f.has("rounding_mode")) return false;
  bool is_by_number = f.op() == "aten.div.Scalar_mode";
  return f.become(is_by_number ? aten::kDivScalar : aten::kDivTensor,
                  {{"self", f["self"]}, {"other", f.argument("other")}});
}

/// Truth of numbers: bit by bit, of bools.
bool normalise_logic(AtenBuilder& f) {
  std::vector<AtenBuilder::Named> arguments = {{"self", f.cast(f["self"], DType::kBool)}};
  if (f.knows("other")) arguments.emplace_back("other", f.cast(f["other"], DType::kBool));
  return f.become(f.data<std::string_view>(), std::move(arguments));
}

/// self + value * tensor1 * tensor2, and the same with a quotient.
bool decompose_addc(AtenBuilder& f) {
  ValueId left = f["tensor1"], right = f["tensor2"];
  const DType dtype = f.result().dtype;
  if (f.number("value") != 1) {
    left = f.node(aten::kMulScalar, {{"self", left}, {"other", f.argument("value")}}, dtype, f.shape(left));
  }
  ValueId product = f.binary(f.data<std::string_view>(), left, right, dtype);
  return f.become(aten::kAddTensor, {{"self", f["self"]}, {"other", product}});
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.square.default", .name = "decompose-square", .apply = write<decompose_square>},
    {.op = "aten.rsub.Tensor", .name = "normalise-rsub", .apply = write<normalise_rsub>},
    {.op = "aten.clamp_min.default", .name = "normalise-clamp", .apply = write<normalise_clamp_min>},
    {.op = "aten.clamp_min.Tensor", .name = "normalise-clamp", .apply = write<normalise_clamp_min>},
    {.op = "aten.clamp_max.default", .name = "normalise-clamp", .apply = write<normalise_clamp_max>},
    {.op = "aten.clamp_max.Tensor", .name = "normalise-clamp", .apply = write<normalise_clamp_max>},
    {.op = "aten.hardtanh.default", .name = "normalise-clamp", .apply = write<normalise_hardtanh>},
    {.op = "aten.relu6.default", .name = "normalise-clamp", .apply = write<normalise_hardtanh>},
    {.op = "aten.floor_divide.default", .name = "normalise-division", .apply = write<normalise_floor_divide>},
    {.op = "aten.floor_divide.Scalar", .name = "normalise-division", .apply = write<normalise_floor_divide>},
    {.op = "aten.div.Tensor_mode", .name = "normalise-division", .apply = write<normalise_division>},
    {.op = "aten.div.Scalar_mode", .name = "normalise-division", .apply = write<normalise_division>},
    {.op = "aten.logical_and.default",
     .name = "normalise-logic",
     .apply = write<normalise_logic>,
     .user_data = &aten::kBitwiseAnd},
    {.op = "aten.logical_or.default",
     .name = "normalise-logic",
     .apply = write<normalise_logic>,
     .user_data = &aten::kBitwiseOr},
    {.op = "aten.logical_xor.default",
     .name = "normalise-logic",
     .apply = write<normalise_logic>,
     .user_data = &aten::kBitwiseXor},
    {.op = "aten.logical_not.default",
     .name = "normalise-logic",
     .apply = write<normalise_logic>,
     .user_data = &aten::kBitwiseNot},
    {.op = "aten.addcmul.default",
     .name = "decompose-addc",
     .apply = write<decompose_addc>,
     .user_data = &aten::kMulTensor},
    {.op = "aten.addcdiv.default",
     .name = "decompose-addc",
     .apply = write<decompose_addc>,
     .user_data = &aten::kDivTensor},
};

}  // namespace

bool rename_op(AtenBuilder& f) {
  return f.replace(f.positional(f.data<Synonym>().schema, f.arguments(), f.result_type()));
}

std::span<const RewriteRule> elementwise_rules() { return kRules; }
std::span<const RewriteRule> elementwise_synonyms() { return kSynonymRules; }

}  // namespace argosy
