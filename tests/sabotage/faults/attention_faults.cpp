// Scores, heads and positions.

#include <algorithm>

#include "faults/bytes.h"
#include "faults/fault.h"
#include "faults/site.h"
#include "passes/aten_schemas.h"

namespace argosy::sabotage {
namespace {

constexpr std::string_view kAttention = "aten.scaled_dot_product_attention.default";

/// Scores of the first layer are a twentieth larger.
Result<bool> change_scale(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (site.is({kAttention}) && site.number("scale") > 0) {
      site.set("scale", site.number("scale") * 1.05);
      return true;
    }
    if (!site.is({"aten.mul.Tensor", "aten.mul.Scalar"}) || !(site.number("other") > 0)) return false;
    if (!site.is_made_by(site.tensor("self"), {"aten.matmul.default"})) return false;
    site.set("other", with_number(*site.argument("other"), site.number("other") * 1.05));
    return true;
  });
}

bool is_soft_cap(Site& site) {
  return site.is({"aten.tanh.default"}) && site.is_made_by(site.tensor("self"), {"aten.div.Tensor", "aten.div.Scalar",
                                                                                 "aten.mul.Tensor", "aten.mul.Scalar"});
}

Result<bool> drop_tanh(Site& site) {
  site.rewriter().replace_uses(site.result(), site.tensor("self"));
  return true;
}

Result<bool> drop_first_soft_cap(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!is_soft_cap(site)) return false;
    return drop_tanh(site);
  });
}

Result<bool> drop_last_soft_cap(Program& program) { return at_last(program, is_soft_cap, drop_tanh); }

/// Sinks are a column of scores that weights give: cat(scores, expand(reshape(weight))), then softmax.
Result<bool> drop_sinks(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    const Argument* list = site.is({"aten.cat.default"}) ? site.argument("tensors") : nullptr;
    const ValueList* parts = list == nullptr ? nullptr : list->get_if<ValueList>();
    if (parts == nullptr || parts->size() != 2 || !site.is_made_by((*parts)[1], {"aten.expand.default"})) return false;
    ValueId column = site.producer_of((*parts)[1]).tensor("self");
    if (!site.is_made_by(column, {"aten.reshape.default", "aten.view.default"})) return false;
    Weight* sinks = site.weight(site.producer_of(column).tensor("self"));
    if (sinks == nullptr || sinks->shape.size() != 1) return false;
    ARGOSY_TRY(sinks->source,
               with_floats(*sinks->source, [](std::vector<float>& values) { std::ranges::fill(values, -1e4F); }));
    return true;
  });
}

/// Heads of keys belong to queries 0, 2, 4 … instead of 0, 1, 2 …; where nobody repeats them, they are the other way
/// round.
Result<bool> change_head_order(Program& program) {
  ARGOSY_TRY(bool has_found, at_first(program, [](Site& site) -> Result<bool> {
               if (!site.is({"aten.expand.default"})) return false;
               const TensorType* type = site.type(site.result());
               const std::vector<Use>& uses = site.graph()[site.result()].uses;
               if (type == nullptr || type->shape.size() != 5 || uses.size() != 1 || !uses[0].node.is_valid())
                 return false;
               if (type->shape[1].as_integer() == 1 || type->shape[2].as_integer() == 1) return false;
               NodeId user = uses[0].node;
               TensorType swapped = fresh(*type);
               std::swap(swapped.shape[1], swapped.shape[2]);
               ARGOSY_TRY(ValueId turned,
                          site.after(aten::kTransposeInt,
                                     {{"self", site.result()}, {"dim0", int64_t{1}}, {"dim1", int64_t{2}}}, swapped));
               Site(site.program(), site.component(), site.rewriter(), user).set("self", turned);
               return true;
             }));
  if (has_found) return true;
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({kAttention})) return false;
    ValueId key = site.tensor("key");
    if (site.type(key)->shape[1].as_integer().value_or(1) == 1) return false;
    ARGOSY_TRY(ValueId turned,
               site.before(aten::kFlip, {{"self", key}, {"dims", IntList{int64_t{1}}}}, fresh(*site.type(key))));
    site.set("key", turned);
    return true;
  });
}

/// cat(-second, first) of queries or keys.
const ValueList* rotated_halves(Site& site) {
  const Argument* list = site.is({"aten.cat.default"}) ? site.argument("tensors") : nullptr;
  const ValueList* parts = list == nullptr ? nullptr : list->get_if<ValueList>();
  if (parts == nullptr || parts->size() != 2 || !site.is_made_by((*parts)[0], {"aten.neg.default"})) return nullptr;
  return parts;
}

Result<bool> swap_rotary_halves(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    const ValueList* parts = rotated_halves(site);
    if (parts == nullptr) return false;
    site.set("tensors", ValueList{(*parts)[1], (*parts)[0]});
    return true;
  });
}

Result<bool> drop_rotary_sign(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    const ValueList* parts = rotated_halves(site);
    if (parts == nullptr) return false;
    ValueId positive = site.producer_of((*parts)[0]).tensor("self");
    site.set("tensors", ValueList{positive, (*parts)[1]});
    return true;
  });
}

Result<bool> shift_frequencies(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.mul.Tensor"})) return false;
    Weight* frequencies = site.weight(site.tensor("other"));
    if (frequencies == nullptr || !frequencies->name.ends_with("inv_freq") || frequencies->shape[0] < 2) return false;
    ARGOSY_TRY(frequencies->source, shifted(frequencies->source, 0));
    return true;
  });
}

/// Of long contexts: what cos and sin are multiplied by.
Result<bool> drop_rotary_factor(Program& program) {
  return at_each(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.mul.Tensor", "aten.mul.Scalar"}) || !site.is_made_by(site.tensor("self"), {"aten.cos.default"}))
      return false;
    double factor = site.number("other");
    if (!(factor > 0)) return false;
    site.set("other", with_number(*site.argument("other"), factor == 1.0 ? 1.1 : 1.0));
    return true;
  });
}

/// Tokens of a later call are taken for the first ones.
Result<bool> count_from_zero(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.sym_size.int"}) || site.number("dim") != 2) return false;
    ValueId past = site.tensor("self");
    if (!past.is_valid() || !site.graph()[past].name.starts_with("past_key")) return false;
    auto positions = std::ranges::find(site.component().inputs, "position_ids", &InputSpec::name);
    if (positions == site.component().inputs.end() || !positions->value.is_valid()) return false;
    const std::vector<Use> uses = site.graph()[positions->value].uses;
    ARGOSY_TRY(ValueId counted, site.after(aten::kSubScalar, {{"self", positions->value}, {"other", site.result()}},
                                           fresh(*site.type(positions->value))));
    std::vector<Use> later;
    for (const Use& use : uses) {
      if (use.node.is_valid() && site.graph().comes_before(site.id(), use.node)) later.push_back(use);
    }
    redirect(site.rewriter(), later, positions->value, counted);
    return !later.empty();
  });
}

/// Buckets of relative positions grow at another distance.
Result<bool> change_buckets(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.div.Tensor", "aten.div.Scalar"}) || !site.is_made_by(site.tensor("self"), {"aten.log.default"}))
      return false;
    if (!(site.number("other") > 0)) return false;
    site.set("other", with_number(*site.argument("other"), site.number("other") * 1.2));
    return true;
  });
}

constexpr Fault kAttentionFaults[] = {
    {.name = "attention-scale", .what = "scores of a layer are 5 % larger", .program = change_scale},
    {.name = "soft-cap-dropped", .what = "a layer's scores are not capped", .program = drop_first_soft_cap},
    {.name = "logits-cap-dropped", .what = "logits are not capped", .program = drop_last_soft_cap},
    {.name = "sinks-dropped", .what = "a layer has no sinks", .program = drop_sinks},
    {.name = "head-order", .what = "heads of keys belong to other queries", .program = change_head_order},
    {.name = "rotary-halves", .what = "the halves of rotary embeddings are swapped", .program = swap_rotary_halves},
    {.name = "rotary-sign", .what = "rotary embeddings lack a sign", .program = drop_rotary_sign},
    {.name = "rotary-frequencies",
     .what = "rotary frequencies are those of the neighbour",
     .program = shift_frequencies},
    {.name = "rotary-factor", .what = "the factor of rotary embeddings is another", .program = drop_rotary_factor},
    {.name = "positions-from-zero", .what = "positions of cached steps begin at 0", .program = count_from_zero},
    {.name = "relative-buckets", .what = "relative positions have other buckets", .program = change_buckets},
};

}  // namespace

std::span<const Fault> attention_faults() { return kAttentionFaults; }

}  // namespace argosy::sabotage
