#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

// In alphabetical order.
constexpr Synonym kSynonyms[] = {
    {"aten.__and__.Scalar", "aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.__and__.Tensor", "aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor"},
    {"aten.__or__.Scalar", "aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor"},
    {"aten.__or__.Tensor", "aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor"},
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

Result<bool> decompose_square(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  ARGOSY_TRY(ValueId result, match.emit(aten::kMulTensor, {{"self", self}, {"other", self}}, match.result()));
  return match.replace(result);
}

/// other - alpha * self
Result<bool> normalise_rsub(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ARGOSY_TRY(ValueId result,
             match.emit(aten::kSubTensor,
                        {{"self", match.tensor("other")}, {"other", match.tensor("self")}, {"alpha", match["alpha"]}},
                        match.result()));
  return match.replace(result);
}

Result<bool> clamp(Match& match, Argument min, Argument max) {
  bool is_by_tensors = min.is<ValueId>() || max.is<ValueId>();
  for (const Argument* bound : {&min, &max}) {
    const ValueId* value = bound->get_if<ValueId>();
    if (value != nullptr && match.emit.graph()[*value].tensor() == nullptr) is_by_tensors = false;
  }
  ARGOSY_TRY(
      ValueId result,
      match.emit(is_by_tensors ? aten::kClampTensor : aten::kClamp,
                 {{"self", match.tensor("self")}, {"min", std::move(min)}, {"max", std::move(max)}}, match.result()));
  return match.replace(result);
}

Result<bool> normalise_clamp_min(RuleContext& context, const RewriteRule&) {
  Match match(context);
  return clamp(match, match["min"], None{});
}

Result<bool> normalise_clamp_max(RuleContext& context, const RewriteRule&) {
  Match match(context);
  return clamp(match, None{}, match["max"]);
}

Result<bool> normalise_hardtanh(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (!match.has("min_val")) return clamp(match, int64_t{0}, int64_t{6});
  return clamp(match, match["min_val"], match["max_val"]);
}

/// Division that rounds down.
Result<bool> normalise_floor_divide(RuleContext& context, const RewriteRule&) {
  Match match(context);
  bool is_by_number = match.schema().name == "aten.floor_divide.Scalar";
  ARGOSY_TRY(
      ValueId result,
      match.emit(is_by_number ? aten::kDivScalarMode : aten::kDivTensorMode,
                 {{"self", match.tensor("self")}, {"other", match["other"]}, {"rounding_mode", std::string("floor")}},
                 match.result()));
  return match.replace(result);
}

Result<bool> normalise_division(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (!match["rounding_mode"].is<None>()) return false;
  bool is_by_number = match.schema().name == "aten.div.Scalar_mode";
  ARGOSY_TRY(ValueId result, match.emit(is_by_number ? aten::kDivScalar : aten::kDivTensor,
                                        {{"self", match.tensor("self")}, {"other", match["other"]}}, match.result()));
  return match.replace(result);
}

/// Truth of numbers: bit by bit, of bools.
Result<bool> normalise_logic(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  ARGOSY_TRY(ValueId self, emit_cast(match.emit, match.tensor("self"), DType::kBool));
  std::vector<Emitter::Named> arguments = {{"self", self}};
  if (match.has("other")) {
    ARGOSY_TRY(ValueId other, emit_cast(match.emit, match.tensor("other"), DType::kBool));
    arguments.emplace_back("other", other);
  }
  auto schema = *static_cast<const std::string_view*>(rule.user_data);
  ARGOSY_TRY(ValueId result, match.emit(schema, std::move(arguments), match.result()));
  return match.replace(result);
}

/// self + value * tensor1 * tensor2, and the same with a quotient.
Result<bool> decompose_addc(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  const TensorType result = match.result();
  ValueId left = match.tensor("tensor1");
  if (match["value"] != Argument(int64_t{1}) && match["value"] != Argument(1.0)) {
    TensorType type{result.dtype, match.emit.type(left).shape, {}};
    ARGOSY_TRY(left, match.emit(aten::kMulScalar, {{"self", left}, {"other", match["value"]}}, type));
  }
  // The shape of the product may be smaller than that of the result; it is only known where one operand has it all.
  ValueId right = match.tensor("tensor2");
  const TensorType& left_type = match.emit.type(left);
  const TensorType& right_type = match.emit.type(right);
  TensorType inner{result.dtype, {}, {}};
  if (left_type.shape == right_type.shape || right_type.shape.empty()) {
    inner.shape = left_type.shape;
  } else if (left_type.shape.empty() || right_type.shape == result.shape) {
    inner.shape = right_type.shape;
  } else if (left_type.shape == result.shape) {
    inner.shape = left_type.shape;
  } else {
    return false;
  }
  auto schema = *static_cast<const std::string_view*>(rule.user_data);
  ARGOSY_TRY(ValueId product, match.emit(schema, {{"self", left}, {"other", right}}, inner));
  ARGOSY_TRY(ValueId sum, match.emit(aten::kAddTensor, {{"self", match.tensor("self")}, {"other", product}}, result));
  return match.replace(sum);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.square.default", .name = "decompose-square", .apply = decompose_square},
    {.op = "aten.rsub.Tensor", .name = "normalise-rsub", .apply = normalise_rsub},
    {.op = "aten.clamp_min.default", .name = "normalise-clamp", .apply = normalise_clamp_min},
    {.op = "aten.clamp_min.Tensor", .name = "normalise-clamp", .apply = normalise_clamp_min},
    {.op = "aten.clamp_max.default", .name = "normalise-clamp", .apply = normalise_clamp_max},
    {.op = "aten.clamp_max.Tensor", .name = "normalise-clamp", .apply = normalise_clamp_max},
    {.op = "aten.hardtanh.default", .name = "normalise-clamp", .apply = normalise_hardtanh},
    {.op = "aten.relu6.default", .name = "normalise-clamp", .apply = normalise_hardtanh},
    {.op = "aten.floor_divide.default", .name = "normalise-division", .apply = normalise_floor_divide},
    {.op = "aten.floor_divide.Scalar", .name = "normalise-division", .apply = normalise_floor_divide},
    {.op = "aten.div.Tensor_mode", .name = "normalise-division", .apply = normalise_division},
    {.op = "aten.div.Scalar_mode", .name = "normalise-division", .apply = normalise_division},
    {.op = "aten.logical_and.default",
     .name = "normalise-logic",
     .apply = normalise_logic,
     .user_data = &aten::kBitwiseAnd},
    {.op = "aten.logical_or.default",
     .name = "normalise-logic",
     .apply = normalise_logic,
     .user_data = &aten::kBitwiseOr},
    {.op = "aten.logical_xor.default",
     .name = "normalise-logic",
     .apply = normalise_logic,
     .user_data = &aten::kBitwiseXor},
    {.op = "aten.logical_not.default",
     .name = "normalise-logic",
     .apply = normalise_logic,
     .user_data = &aten::kBitwiseNot},
    {.op = "aten.addcmul.default", .name = "decompose-addc", .apply = decompose_addc, .user_data = &aten::kMulTensor},
    {.op = "aten.addcdiv.default", .name = "decompose-addc", .apply = decompose_addc, .user_data = &aten::kDivTensor},
};

}  // namespace

Result<bool> rename_op(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  const auto& synonym = *static_cast<const Synonym*>(rule.user_data);
  ARGOSY_TRY(ValueId result, match.emit.positional(synonym.schema, match.arguments(), match.result_type()));
  return match.replace(result);
}

std::span<const RewriteRule> elementwise_rules() { return kRules; }
std::span<const RewriteRule> elementwise_synonyms() { return kSynonymRules; }

}  // namespace argosy
