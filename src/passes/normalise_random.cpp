#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

constexpr std::string_view kRandLike =
    "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor";
constexpr std::string_view kRandnLike =
    "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor";
constexpr std::string_view kLessScalar = "aten::lt.Scalar(Tensor self, Scalar other) -> Tensor";
constexpr std::string_view kLessTensor = "aten::lt.Tensor(Tensor self, Tensor other) -> Tensor";
constexpr std::string_view kLog = "aten::log(Tensor self) -> Tensor";
constexpr std::string_view kRsubScalar = "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";

// Which random numbers a call gives is not part of a program: only how they are spread is kept.

double real(const Match& match, std::string_view argument) {
  const double* number = match[argument].get_if<double>();
  return number == nullptr ? 0.0 : *number;
}

/// number * factor + added
Result<ValueId> scaled(Match& match, ValueId number, double factor, double added) {
  const TensorType type = match.result();
  if (factor != 1.0) {
    ARGOSY_TRY(number, match.emit(aten::kMulScalar, {{"self", number}, {"other", factor}}, type));
  }
  if (added == 0.0) return number;
  return match.emit(aten::kAddScalar, {{"self", number}, {"other", added}}, type);
}

bool has_floats(const Match& match) { return kind_of(match.result().dtype) == DTypeKind::kFloat; }

Result<bool> decompose_uniform(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (!has_floats(match)) return false;
  double from = real(match, "from"), to = real(match, "to");
  ARGOSY_TRY(ValueId numbers, match.emit(kRandLike, {{"self", match.tensor("self")}}, match.result()));
  ARGOSY_TRY(numbers, scaled(match, numbers, to - from, from));
  return match.replace(numbers);
}

Result<bool> decompose_normal(RuleContext& context, const RewriteRule&) {
  Match match(context);
  if (!has_floats(match)) return false;
  ARGOSY_TRY(ValueId numbers, match.emit(kRandnLike, {{"self", match.tensor("self")}}, match.result()));
  ARGOSY_TRY(numbers, scaled(match, numbers, real(match, "std"), real(match, "mean")));
  return match.replace(numbers);
}

/// -log(1 - u) / lambda
Result<bool> decompose_exponential(RuleContext& context, const RewriteRule&) {
  Match match(context);
  double rate = real(match, "lambd");
  if (!has_floats(match) || rate == 0) return false;
  const TensorType type = match.result();
  ARGOSY_TRY(ValueId numbers, match.emit(kRandLike, {{"self", match.tensor("self")}}, type));
  ARGOSY_TRY(numbers, match.emit(kRsubScalar, {{"self", numbers}, {"other", 1.0}}, type));
  ARGOSY_TRY(numbers, match.emit(kLog, {{"self", numbers}}, type));
  ARGOSY_TRY(numbers, scaled(match, numbers, -1.0 / rate, 0.0));
  return match.replace(numbers);
}

/// Ones with a probability: a number for all, or one for each.
Result<bool> decompose_bernoulli(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  TensorType type{DType::kF32, result.shape, {}};
  ARGOSY_TRY(ValueId numbers, match.emit(kRandLike, {{"self", match.tensor("self")}, {"dtype", DType::kF32}}, type));
  type.dtype = DType::kBool;
  bool is_one_for_all = match.has("p") && match["p"].is<double>();
  ValueId hits;
  if (is_one_for_all) {
    ARGOSY_TRY(hits, match.emit(kLessScalar, {{"self", numbers}, {"other", match["p"]}}, type));
  } else {
    ARGOSY_TRY(ValueId chance, emit_cast(match.emit, match.tensor(match.has("p") ? "p" : "self"), DType::kF32));
    ARGOSY_TRY(hits, match.emit(kLessTensor, {{"self", numbers}, {"other", chance}}, type));
  }
  ARGOSY_TRY(hits, emit_cast(match.emit, hits, result.dtype));
  return match.replace(hits);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.bernoulli.Tensor", .name = "decompose-random", .apply = decompose_bernoulli},
    {.op = "aten.bernoulli.default", .name = "decompose-random", .apply = decompose_bernoulli},
    {.op = "aten.bernoulli.p", .name = "decompose-random", .apply = decompose_bernoulli},
    {.op = "aten.exponential.default", .name = "decompose-random", .apply = decompose_exponential},
    {.op = "aten.normal_functional.default", .name = "decompose-random", .apply = decompose_normal},
    {.op = "aten.uniform.default", .name = "decompose-random", .apply = decompose_uniform},
};

}  // namespace

std::span<const RewriteRule> random_rules() { return kRules; }

}  // namespace argosy
