#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// In alphabetical order.
constexpr Synonym kElementwiseSynonyms[] = {
    {"aten.__and__.Scalar", aten::kBitwiseAndScalar},
    {"aten.__and__.Tensor", aten::kBitwiseAndTensor},
    {"aten.__lshift__.Scalar", aten::kBitwiseLeftShiftTensorScalar},
    {"aten.__lshift__.Tensor", aten::kBitwiseLeftShiftTensor},
    {"aten.__or__.Scalar", aten::kBitwiseOrScalar},
    {"aten.__or__.Tensor", aten::kBitwiseOrTensor},
    {"aten.__rshift__.Scalar", aten::kBitwiseRightShiftTensorScalar},
    {"aten.__rshift__.Tensor", aten::kBitwiseRightShiftTensor},
    {"aten.__xor__.Scalar", aten::kBitwiseXorScalar},
    {"aten.__xor__.Tensor", aten::kBitwiseXorTensor},
    {"aten._is_all_true.default", aten::kAll},
    {"aten._is_any_true.default", aten::kAny},
    {"aten._local_scalar_dense.default", aten::kItem},
    {"aten.absolute.default", aten::kAbs},
    {"aten.arccos.default", aten::kAcos},
    {"aten.arccosh.default", aten::kAcosh},
    {"aten.arcsin.default", aten::kAsin},
    {"aten.arcsinh.default", aten::kAsinh},
    {"aten.arctan.default", aten::kAtan},
    {"aten.arctan2.default", aten::kAtan2},
    {"aten.arctanh.default", aten::kAtanh},
    {"aten.clip.Tensor", aten::kClampTensor},
    {"aten.clip.default", aten::kClamp},
    {"aten.divide.Scalar", aten::kDivScalar},
    {"aten.divide.Scalar_mode", aten::kDivScalarMode},
    {"aten.divide.Tensor", aten::kDivTensor},
    {"aten.divide.Tensor_mode", aten::kDivTensorMode},
    {"aten.fix.default", aten::kTrunc},
    {"aten.greater.Scalar", aten::kGtScalar},
    {"aten.greater.Tensor", aten::kGtTensor},
    {"aten.greater_equal.Scalar", aten::kGeScalar},
    {"aten.greater_equal.Tensor", aten::kGeTensor},
    {"aten.less.Scalar", aten::kLtScalar},
    {"aten.less.Tensor", aten::kLtTensor},
    {"aten.less_equal.Scalar", aten::kLeScalar},
    {"aten.less_equal.Tensor", aten::kLeTensor},
    {"aten.max.other", aten::kMaximum},
    {"aten.min.other", aten::kMinimum},
    {"aten.multiply.Scalar", aten::kMulScalar},
    {"aten.multiply.Tensor", aten::kMulTensor},
    {"aten.negative.default", aten::kNeg},
    {"aten.not_equal.Scalar", aten::kNeScalar},
    {"aten.not_equal.Tensor", aten::kNeTensor},
    {"aten.special_erf.default", aten::kErf},
    {"aten.special_erfc.default", aten::kErfc},
    {"aten.special_exp2.default", aten::kExp2},
    {"aten.special_expit.default", aten::kSigmoid},
    {"aten.special_expm1.default", aten::kExpm1},
    {"aten.special_log1p.default", aten::kLog1p},
    {"aten.special_log_softmax.default", aten::kLogSoftmaxInt},
    {"aten.special_logit.default", aten::kLogit},
    {"aten.special_logsumexp.default", aten::kLogsumexp},
    {"aten.special_sinc.default", aten::kSinc},
    {"aten.special_softmax.default", aten::kSoftmaxInt},
    {"aten.special_xlogy.default", aten::kXlogyTensor},
    {"aten.special_xlogy.other_scalar", aten::kXlogyScalarOther},
    {"aten.special_xlogy.self_scalar", aten::kXlogyScalarSelf},
    {"aten.subtract.Scalar", aten::kSubScalar},
    {"aten.subtract.Tensor", aten::kSubTensor},
    {"aten.true_divide.Scalar", aten::kDivScalar},
    {"aten.true_divide.Tensor", aten::kDivTensor},
};

constexpr auto kElementwiseSynonymRules = synonym_rules(kElementwiseSynonyms);

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

constexpr RewriteRule kElementwiseRules[] = {
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
     .user_data = &aten::kBitwiseAndTensor},
    {.op = "aten.logical_or.default",
     .name = "normalise-logic",
     .apply = write<normalise_logic>,
     .user_data = &aten::kBitwiseOrTensor},
    {.op = "aten.logical_xor.default",
     .name = "normalise-logic",
     .apply = write<normalise_logic>,
     .user_data = &aten::kBitwiseXorTensor},
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

std::span<const RewriteRule> elementwise_rules() { return kElementwiseRules; }
std::span<const RewriteRule> elementwise_synonyms() { return kElementwiseSynonymRules; }

}  // namespace argosy
