// Pictures and sound, and how they come into a text.

#include "faults/bytes.h"
#include "faults/fault.h"
#include "faults/site.h"
#include "passes/aten_schemas.h"

namespace argosy::sabotage {
namespace {

bool has_input(const Component& component, std::string_view part) {
  for (const InputSpec& input : component.inputs) {
    if (input.value.is_valid() && input.name.find(part) != std::string::npos) return true;
  }
  return false;
}

/// The features [.., tokens, width] that one component hands to the next are shifted by a token.
Result<bool> shift_features(Program& program) {
  if (program.components.size() < 2) return false;
  for (Component& component : program.components) {
    if (!has_input(component, "pixel_values") && !has_input(component, "input_features")) continue;
    Graph& graph = component.graphs.front();
    const ValueId* features = graph.outputs()[0].get_if<ValueId>();
    if (features == nullptr || graph[*features].tensor()->shape.size() < 2) continue;
    Rewriter rewriter(graph);
    // Behind the last node, by way of a copy to stand before.
    ValueId value = *features;
    const TensorType type = fresh(*graph[value].tensor());
    ARGOSY_TRY(ValueId copy,
               Site(program, component, rewriter, graph.last()).after(aten::kClone, {{"self", value}}, type));
    Site site(program, component, rewriter, graph[copy].producer);
    ARGOSY_TRY(ValueId moved, emit_shifted(site, value, static_cast<int64_t>(type.shape.size()) - 2));
    rewriter.set_output(0, moved);
    return true;
  }
  return false;
}

/// The component that puts features into a text takes the neighbour's.
Result<bool> misplace_features(Program& program) {
  for (Component& component : program.components) {
    if (!has_input(component, "input_ids")) continue;
    for (const InputSpec& input : component.inputs) {
      if (!input.value.is_valid() || !input.name.ends_with("_features")) continue;
      Graph& graph = component.graphs.front();
      Rewriter rewriter(graph);
      const std::vector<Use> uses = graph[input.value].uses;
      Site site(program, component, rewriter, graph.first());
      auto dim = static_cast<int64_t>(graph[input.value].tensor()->shape.size()) - 2;
      ARGOSY_TRY(ValueId moved, emit_shifted(site, input.value, dim));
      redirect(rewriter, uses, input.value, moved);
      return true;
    }
  }
  return false;
}

/// Tokens of pictures are taken for text.
Result<bool> ignore_token_types(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.eq.Scalar"}) || !site.tensor("self").is_valid()) return false;
    if (site.graph()[site.origin(site.tensor("self"))].name != "token_type_ids") return false;
    site.set("other", int64_t{7});
    return true;
  });
}

Result<bool> edit_patches(Program& program, Result<TensorSourcePtr> (*edit)(const Weight&)) {
  return at_first(program, [&](Site& site) -> Result<bool> {
    if (!site.is({"aten.conv2d.default"})) return false;
    Weight* weight = site.weight(site.tensor("weight"));
    if (weight == nullptr || weight->shape.size() != 4) return false;
    ARGOSY_TRY(TensorSourcePtr edited, edit(*weight));
    if (edited == weight->source) return false;
    weight->source = std::move(edited);
    return true;
  });
}

Result<TensorSourcePtr> turned(const Weight& weight) { return transposed(weight.source, {0, 1, 3, 2}); }
Result<TensorSourcePtr> with_channels_reversed(const Weight& weight) { return reversed(weight.source, 1); }

/// Rows of a picture are its columns.
Result<bool> turn_pictures(Program& program) {
  for (Component& component : program.components) {
    for (const InputSpec& input : component.inputs) {
      if (!input.value.is_valid() || input.name != "pixel_values") continue;
      Graph& graph = component.graphs.front();
      const TensorType type = fresh(*graph[input.value].tensor());
      if (type.shape.size() != 4 || type.shape[2] != type.shape[3]) continue;
      Rewriter rewriter(graph);
      const std::vector<Use> uses = graph[input.value].uses;
      Site site(program, component, rewriter, graph.first());
      ARGOSY_TRY(ValueId moved, site.before(aten::kTransposeInt,
                                            {{"self", input.value}, {"dim0", int64_t{2}}, {"dim1", int64_t{3}}}, type));
      redirect(rewriter, uses, input.value, moved);
      return true;
    }
  }
  return false;
}

/// What stands for a whole sequence is its second token instead of its first.
Result<bool> pool_second_token(Program& program) {
  return at_last(
      program,
      [](Site& site) {
        return site.is({"aten.select.int"}) && site.number("dim") == 1 && site.number("index") == 0 &&
               site.type(site.tensor("self"))->shape.size() == 3;
      },
      [](Site& site) -> Result<bool> {
        site.set("index", int64_t{1});
        return true;
      });
}

constexpr Fault kMediaFaults[] = {
    {.name = "media-shifted",
     .what = "features of pictures or sound are shifted by a token",
     .program = shift_features},
    {.name = "media-misplaced", .what = "a text gets the neighbour's features", .program = misplace_features},
    {.name = "token-types-ignored", .what = "tokens of pictures are taken for text", .program = ignore_token_types},
    {.name = "patches-turned",
     .what = "height and width of patches are swapped",
     .program = [](Program& program) { return edit_patches(program, turned); }},
    {.name = "channels-reversed",
     .what = "colours are in the other order",
     .program = [](Program& program) { return edit_patches(program, with_channels_reversed); }},
    {.name = "pictures-turned", .what = "height and width of pictures are swapped", .program = turn_pictures},
    {.name = "pooled-token", .what = "the second token stands for the whole", .program = pool_second_token},
};

}  // namespace

std::span<const Fault> media_faults() { return kMediaFaults; }

}  // namespace argosy::sabotage
