#include "passes/aten_schemas.h"
#include "passes/in_place_ops.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// Every tensor of one number is full.default, which says its dtype. What is in an empty one does not matter: zeros.
Result<bool> fill(RuleContext& context, const Argument& value) {
  Match match(context);
  const TensorType result = match.result();
  IntList sizes;
  if (match.has("size")) {
    sizes = std::get<IntList>(match["size"].variant());
  } else if (match.has("self")) {
    ARGOSY_TRY(sizes, sizes_of(match.emit, match.tensor("self")));
  }
  ARGOSY_TRY(
      ValueId full,
      match.emit(aten::kFull, {{"size", std::move(sizes)}, {"fill_value", value}, {"dtype", result.dtype}}, result));
  return match.replace(full);
}

Result<bool> fill_zeros(RuleContext& context, const RewriteRule&) { return fill(context, Argument(int64_t{0})); }
Result<bool> fill_ones(RuleContext& context, const RewriteRule&) { return fill(context, Argument(int64_t{1})); }

Result<bool> fill_value(RuleContext& context, const RewriteRule&) {
  Match match(context);
  return fill(context, match[match.has("s") ? "s" : "fill_value"]);
}

/// copy and fill of decomposed graphs: another tensor, in the dtype and shape of the one that it replaces.
Result<bool> replace_whole(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ARGOSY_TRY(ValueId result,
             emit_as(match.emit, match.tensor(match.has("src") ? "src" : "value"), match.tensor("self")));
  return match.replace(result);
}

Result<bool> fill_scalar(RuleContext& context, const RewriteRule&) { return fill(context, Match(context)["value"]); }

Result<bool> normalise_full(RuleContext& context, const RewriteRule& rule) {
  return Match(context)["dtype"].is<DType>() ? Result<bool>(false) : fill_value(context, rule);
}

/// arange has a start, a step and a dtype.
Result<bool> normalise_arange(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  bool is_whole = match.has("step") && match["dtype"].is<DType>();
  if (is_whole) return false;
  Argument start = match.has("start") ? match["start"] : Argument(int64_t{0});
  Argument step = match.has("step") ? match["step"] : Argument(int64_t{1});
  ARGOSY_TRY(
      ValueId range,
      match.emit(
          aten::kArange,
          {{"start", std::move(start)}, {"end", match["end"]}, {"step", std::move(step)}, {"dtype", result.dtype}},
          result));
  return match.replace(range);
}

/// A matrix of which row and column are the same number.
Result<bool> decompose_eye(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const TensorType result = match.result();
  if (result.shape.size() != 2) return false;
  auto line = [&](size_t dim, Argument count) -> Result<ValueId> {
    TensorType type{DType::kI64, {result.shape[dim]}, {}};
    ARGOSY_TRY(
        ValueId range,
        match.emit(aten::kArange,
                   {{"start", int64_t{0}}, {"end", std::move(count)}, {"step", int64_t{1}}, {"dtype", DType::kI64}},
                   type));
    type.shape.insert(type.shape.begin() + (dim == 0 ? 1 : 0), match.emit.number(1));
    return match.emit(aten::kUnsqueeze, {{"self", range}, {"dim", int64_t{dim == 0 ? 1 : 0}}}, type);
  };
  ARGOSY_TRY(ValueId rows, line(0, match["n"]));
  ARGOSY_TRY(ValueId columns, line(1, match[match.has("m") ? "m" : "n"]));
  ARGOSY_TRY(ValueId equal, match.emit(aten::kEqTensor, {{"self", rows}, {"other", columns}},
                                       TensorType{DType::kBool, result.shape, {}}));
  ARGOSY_TRY(ValueId eye, emit_cast(match.emit, equal, result.dtype));
  return match.replace(eye);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten.empty.memory_format", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.empty_like.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.empty_permuted.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.empty_strided.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.new_empty.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.new_empty_strided.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.new_zeros.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.zeros.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.zeros_like.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.new_ones.default", .name = "normalise-fill", .apply = fill_ones},
    {.op = "aten.ones.default", .name = "normalise-fill", .apply = fill_ones},
    {.op = "aten.ones_like.default", .name = "normalise-fill", .apply = fill_ones},
    {.op = "aten.full.default", .name = "normalise-fill", .apply = normalise_full},
    {.op = "aten.full_like.default", .name = "normalise-fill", .apply = fill_value},
    {.op = "aten.new_full.default", .name = "normalise-fill", .apply = fill_value},
    {.op = "aten.scalar_tensor.default", .name = "normalise-fill", .apply = fill_value},
    {.op = "aten.copy.default", .name = "normalise-fill", .apply = replace_whole},
    {.op = "aten.fill.Scalar", .name = "normalise-fill", .apply = fill_scalar},
    {.op = "aten.fill.Tensor", .name = "normalise-fill", .apply = replace_whole},
    {.op = "aten.zero.default", .name = "normalise-fill", .apply = fill_zeros},
    {.op = "aten.arange.default", .name = "normalise-arange", .apply = normalise_arange},
    {.op = "aten.arange.start", .name = "normalise-arange", .apply = normalise_arange},
    {.op = "aten.arange.start_step", .name = "normalise-arange", .apply = normalise_arange},
    {.op = "aten.eye.default", .name = "decompose-eye", .apply = decompose_eye},
    {.op = "aten.eye.m", .name = "decompose-eye", .apply = decompose_eye},
};

}  // namespace

std::span<const RewriteRule> creation_rules() { return kRules; }

}  // namespace argosy
