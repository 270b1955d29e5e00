#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/normalise_families.h"

namespace argosy {
namespace {

/// What is checked at run time holds for the inputs that the program is for.
bool drop_assertion(AtenBuilder& f) { return f.erase(); }

bool drop_copy(AtenBuilder& f) { return f.replace(std::get<ValueId>(f.arguments()[0].variant())); }

/// Real numbers are their own conjugates.
bool drop_conjugate(AtenBuilder& f) { return kind_of(f.dtype(f["self"])) != DTypeKind::kComplex && drop_copy(f); }

/// to.dtype is the only cast that is left; devices and layouts are ignored.
bool normalise_cast(AtenBuilder& f) {
  bool is_cast = f.op() == "aten.to.dtype" && f.dtype(f["self"]) != f.result().dtype;
  return !is_cast && f.replace(f["self"]);
}

/// Bits of numbers read as another dtype; as the same dtype they do not change.
bool drop_reinterpretation(AtenBuilder& f) { return f.dtype(f["self"]) == f.result().dtype && drop_copy(f); }

bool drop_dropout(AtenBuilder& f) { return (!f.flag("train") || f.number("p") == 0) && drop_copy(f); }

/// native_dropout of an evaluation: its mask is all true.
bool drop_native_dropout(AtenBuilder& f) {
  if (!f.has("train") || f.flag("train")) return false;
  ValueId input = f["input"];
  return f.replace({input, f.full(f.shape(input), true, DType::kBool, {input})});
}

bool drop_slice(AtenBuilder& f) {
  return f.integer("step") == 1 && f.shape(f["self"]) == f.result().shape && f.replace(f["self"]);
}

constexpr RewriteRule kNoOpsRules[] = {
    {.op = "aten._assert_async.default", .name = "drop-assertion", .apply = write<drop_assertion>},
    {.op = "aten._assert_async.msg", .name = "drop-assertion", .apply = write<drop_assertion>},
    {.op = "aten._assert_scalar.default", .name = "drop-assertion", .apply = write<drop_assertion>},
    {.op = "aten._assert_tensor_metadata.default", .name = "drop-assertion", .apply = write<drop_assertion>},
    {.op = "aten.sym_constrain_range.default", .name = "drop-assertion", .apply = write<drop_assertion>},
    {.op = "aten.sym_constrain_range_for_size.default", .name = "drop-assertion", .apply = write<drop_assertion>},
    {.op = "aten.alias.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.clone.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.contiguous.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.detach.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.lift_fresh.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.lift_fresh_copy.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.conj.default", .name = "drop-conjugate", .apply = write<drop_conjugate>},
    {.op = "aten._conj.default", .name = "drop-conjugate", .apply = write<drop_conjugate>},
    {.op = "aten.conj_physical.default", .name = "drop-conjugate", .apply = write<drop_conjugate>},
    {.op = "aten.real.default", .name = "drop-conjugate", .apply = write<drop_conjugate>},
    {.op = "aten.resolve_conj.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.resolve_neg.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.positive.default", .name = "drop-copy", .apply = write<drop_copy>},
    {.op = "aten.view.dtype", .name = "drop-reinterpretation", .apply = write<drop_reinterpretation>},
    {.op = "aten._to_copy.default", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.to.device", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.to.dtype", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.to.dtype_layout", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.to.other", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.to.prim_Device", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.to.prim_dtype", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.to.prim_other", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.type_as.default", .name = "normalise-cast", .apply = write<normalise_cast>},
    {.op = "aten.alpha_dropout.default", .name = "drop-dropout", .apply = write<drop_dropout>},
    {.op = "aten.dropout.default", .name = "drop-dropout", .apply = write<drop_dropout>},
    {.op = "aten.feature_alpha_dropout.default", .name = "drop-dropout", .apply = write<drop_dropout>},
    {.op = "aten.feature_dropout.default", .name = "drop-dropout", .apply = write<drop_dropout>},
    {.op = "aten.native_dropout.default", .name = "drop-dropout", .apply = write<drop_native_dropout>},
    {.op = "aten.slice.Tensor", .name = "drop-slice", .apply = write<drop_slice>},
};

}  // namespace

std::span<const RewriteRule> no_op_rules() { return kNoOpsRules; }

}  // namespace argosy
