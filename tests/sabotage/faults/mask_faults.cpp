// Which tokens see which.

#include <algorithm>

#include "faults/fault.h"
#include "faults/site.h"
#include "passes/aten_schemas.h"

namespace argosy::sabotage {
namespace {

constexpr double kFar = 1 << 20;

/// "k <= p" becomes "k <= p + offset", in all masks.
Result<bool> move_causal(Program& program, double offset) {
  return at_each(program, [&](Site& site) -> Result<bool> {
    if (!site.is({"aten.le.Tensor"}) || !site.tensor("other").is_valid()) return false;
    ValueId position = site.tensor("other");
    ARGOSY_TRY(ValueId moved,
               site.before(aten::kAddScalar, {{"self", position}, {"other", static_cast<int64_t>(offset)}},
                           fresh(*site.type(position))));
    site.set("other", moved);
    return true;
  });
}

/// "k > p - window" with another window, in all masks.
Result<bool> change_window(Program& program, double added) {
  return at_each(program, [&](Site& site) -> Result<bool> {
    if (!site.is({"aten.gt.Tensor"}) || !site.is_made_by(site.tensor("other"), {"aten.sub.Tensor", "aten.sub.Scalar"}))
      return false;
    Site distance = site.producer_of(site.tensor("other"));
    double window = distance.number("other");
    if (!(window > 1)) return false;
    distance.set("other", with_number(*distance.argument("other"), window + added));
    return true;
  });
}

/// The node that brings a layer's mask into its attention, and the argument that it is.
std::string_view mask_argument(Site& site) {
  if (site.is({"aten.scaled_dot_product_attention.default"}) && site.tensor("attn_mask").is_valid()) return "attn_mask";
  if (site.is({"aten.add.Tensor"}) && site.is_made_by(site.tensor("other"), {"aten.where.ScalarOther"})) return "other";
  return "";
}

Result<bool> swap_layer_masks(Program& program) {
  ValueId first;
  NodeId first_node;
  std::string_view first_argument;
  return at_first(program, [&](Site& site) -> Result<bool> {
    std::string_view name = mask_argument(site);
    if (name.empty()) return false;
    ValueId mask = site.tensor(name);
    if (!first.is_valid()) {
      first = mask;
      first_node = site.id();
      first_argument = name;
      return false;
    }
    if (mask == first) return false;
    // Where this mask is computed only after the first layer, the first one is the mask of both.
    NodeId made = site.graph()[mask].producer;
    if (!made.is_valid() || site.graph().comes_before(made, first_node)) {
      Site(site.program(), site.component(), site.rewriter(), first_node).set(first_argument, mask);
    }
    site.set(name, first);
    return true;
  });
}

/// Whether a value depends on an input whose name ends so, by a few nodes.
bool comes_from(const Site& site, ValueId value, std::string_view ending, int depth = 8) {
  if (!value.is_valid() || depth == 0) return false;
  if (site.graph()[value].name.ends_with(ending)) return true;
  NodeId producer = site.graph()[value].producer;
  if (!producer.is_valid()) return false;
  for (const Argument& argument : site.graph()[producer].arguments) {
    if (const auto* one = argument.get_if<ValueId>(); one != nullptr && comes_from(site, *one, ending, depth - 1))
      return true;
  }
  return false;
}

/// Whether a component sees what an encoder made.
bool sees_encoder(const Component& component) {
  return std::ranges::any_of(component.inputs,
                             [](const InputSpec& input) { return input.name.starts_with("encoder_"); });
}

/// Padding is seen: what masks have of it is left out; or only those of components that see an encoder.
Result<bool> drop_padding(Program& program, bool of_encoder) {
  return at_each(program, [&](Site& site) -> Result<bool> {
    if (of_encoder && !sees_encoder(site.component())) return false;
    if (!site.is({"aten.__and__.Tensor", "aten.bitwise_and.Tensor", "aten.logical_and.default"})) return false;
    ValueId other = site.origin(site.tensor("other"));
    if (!site.is_made_by(other, {"aten.index.Tensor"})) return false;
    ValueId padding = site.origin(site.producer_of(other).tensor("self"));
    if (!comes_from(site, padding, "attention_mask")) return false;
    site.rewriter().replace_uses(site.result(), site.tensor("self"));
    return true;
  });
}

Result<bool> make_causal(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.scaled_dot_product_attention.default"})) return false;
    const TensorType &query = *site.type(site.tensor("query")), &key = *site.type(site.tensor("key"));
    if (query.shape[2] != key.shape[2]) return false;  // cached, or of another sequence
    site.set("attn_mask", None{});
    site.set("is_causal", true);
    return true;
  });
}

constexpr Fault kMaskFaults[] = {
    {.name = "causal-off-by-one",
     .what = "tokens see the next one",
     .program = [](Program& program) { return move_causal(program, 1); }},
    {.name = "causal-dropped",
     .what = "tokens see all that follow",
     .program = [](Program& program) { return move_causal(program, kFar); }},
    {.name = "causal-strict",
     .what = "tokens do not see themselves",
     .program = [](Program& program) { return move_causal(program, -1); }},
    {.name = "window-one-more",
     .what = "a window of one token more",
     .program = [](Program& program) { return change_window(program, 1); }},
    {.name = "window-one-less",
     .what = "a window of one token less",
     .program = [](Program& program) { return change_window(program, -1); }},
    {.name = "window-dropped",
     .what = "no window",
     .program = [](Program& program) { return change_window(program, kFar); }},
    {.name = "layer-pattern", .what = "two layers have each other's masks", .program = swap_layer_masks},
    {.name = "padding-seen",
     .what = "padded tokens are seen",
     .program = [](Program& program) { return drop_padding(program, false); }},
    {.name = "cross-padding-seen",
     .what = "padded tokens of the encoder are seen by the decoder",
     .program = [](Program& program) { return drop_padding(program, true); }},
    {.name = "encoder-made-causal", .what = "tokens of an encoder see earlier ones only", .program = make_causal},
};

}  // namespace

std::span<const Fault> mask_faults() { return kMaskFaults; }

}  // namespace argosy::sabotage
