#include "passes/aten_schemas.h"
#include "passes/match.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// What is checked at run time holds for the inputs that the program is for.
Result<bool> drop_assertion(RuleContext& context, const RewriteRule&) { return Match(context).erase(); }

Result<bool> drop_copy(RuleContext& context, const RewriteRule&) {
  Match match(context);
  return match.replace(std::get<ValueId>(match.arguments()[0].variant()));
}

/// Real numbers are their own conjugates.
Result<bool> drop_conjugate(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  bool is_complex = kind_of(match.emit.type(match.tensor("self")).dtype) == DTypeKind::kComplex;
  return is_complex ? Result<bool>(false) : drop_copy(context, rule);
}

/// to.dtype is the one cast; devices and layouts are all one.
Result<bool> normalise_cast(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  DType dtype = match.result().dtype;
  if (match.emit.type(self).dtype == dtype) return match.replace(self);
  if (match.schema().name == "aten.to.dtype") return false;
  ARGOSY_TRY(ValueId cast, emit_cast(match.emit, self, dtype));
  return match.replace(cast);
}

Result<bool> drop_dropout(RuleContext& context, const RewriteRule& rule) {
  Match match(context);
  const bool* train = match["train"].get_if<bool>();
  const double* p = match["p"].get_if<double>();
  bool does_nothing = (train != nullptr && !*train) || (p != nullptr && *p == 0);
  return does_nothing ? drop_copy(context, rule) : Result<bool>(false);
}

/// native_dropout of an evaluation: its mask is all true.
Result<bool> drop_native_dropout(RuleContext& context, const RewriteRule&) {
  Match match(context);
  const bool* train = match["train"].get_if<bool>();
  if (train == nullptr || *train) return false;
  ValueId input = match.tensor("input");
  ARGOSY_TRY(IntList sizes, sizes_of(match.emit, input));
  ARGOSY_TRY(ValueId mask,
             match.emit(aten::kFull, {{"size", std::move(sizes)}, {"fill_value", true}, {"dtype", DType::kBool}},
                        match.result(1)));
  return match.replace({input, mask});
}

Result<bool> drop_slice(RuleContext& context, const RewriteRule&) {
  Match match(context);
  ValueId self = match.tensor("self");
  if (match.integer("step") != 1 || match.emit.type(self).shape != match.result().shape) return false;
  return match.replace(self);
}

constexpr RewriteRule kRules[] = {
    {.op = "aten._assert_async.default", .name = "drop-assertion", .apply = drop_assertion},
    {.op = "aten._assert_async.msg", .name = "drop-assertion", .apply = drop_assertion},
    {.op = "aten._assert_scalar.default", .name = "drop-assertion", .apply = drop_assertion},
    {.op = "aten._assert_tensor_metadata.default", .name = "drop-assertion", .apply = drop_assertion},
    {.op = "aten.sym_constrain_range.default", .name = "drop-assertion", .apply = drop_assertion},
    {.op = "aten.sym_constrain_range_for_size.default", .name = "drop-assertion", .apply = drop_assertion},
    {.op = "aten.alias.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten.clone.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten.contiguous.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten.detach.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten.lift_fresh.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten.lift_fresh_copy.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten.conj.default", .name = "drop-conjugate", .apply = drop_conjugate},
    {.op = "aten._conj.default", .name = "drop-conjugate", .apply = drop_conjugate},
    {.op = "aten.conj_physical.default", .name = "drop-conjugate", .apply = drop_conjugate},
    {.op = "aten.real.default", .name = "drop-conjugate", .apply = drop_conjugate},
    {.op = "aten.resolve_conj.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten.resolve_neg.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten.positive.default", .name = "drop-copy", .apply = drop_copy},
    {.op = "aten._to_copy.default", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.to.device", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.to.dtype", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.to.dtype_layout", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.to.other", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.to.prim_Device", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.to.prim_dtype", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.to.prim_other", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.type_as.default", .name = "normalise-cast", .apply = normalise_cast},
    {.op = "aten.alpha_dropout.default", .name = "drop-dropout", .apply = drop_dropout},
    {.op = "aten.dropout.default", .name = "drop-dropout", .apply = drop_dropout},
    {.op = "aten.feature_alpha_dropout.default", .name = "drop-dropout", .apply = drop_dropout},
    {.op = "aten.feature_dropout.default", .name = "drop-dropout", .apply = drop_dropout},
    {.op = "aten.native_dropout.default", .name = "drop-dropout", .apply = drop_native_dropout},
    {.op = "aten.slice.Tensor", .name = "drop-slice", .apply = drop_slice},
};

}  // namespace

std::span<const RewriteRule> no_op_rules() { return kRules; }

}  // namespace argosy
