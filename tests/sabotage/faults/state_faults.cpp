// What is kept from call to call, and which token's logits a runner gets.

#include <algorithm>

#include "backends/executorch/generation/caches.h"
#include "faults/fault.h"
#include "faults/site.h"

namespace argosy::sabotage {
namespace {

constexpr std::string_view kBindTask = "bind-task";
constexpr std::string_view kAdd = "_operator.add(Any a, Any b) -> Any";

/// Tokens of the call stand before those of earlier calls.
Result<bool> turn_cache(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    const Argument* list = site.is({"aten.cat.default"}) ? site.argument("tensors") : nullptr;
    const ValueList* parts = list == nullptr ? nullptr : list->get_if<ValueList>();
    if (parts == nullptr || parts->size() != 2 || !site.graph()[(*parts)[0]].name.starts_with("past_key")) return false;
    site.set("tensors", ValueList{(*parts)[1], (*parts)[0]});
    return true;
  });
}

/// Two outputs of the same type, such as the keys and values of a layer, are each other.
Result<bool> cross_outputs(Program& program) {
  for (Component& component : program.components) {
    Graph& graph = component.graphs.front();
    for (uint32_t i = 0; i + 1 < component.outputs.size(); ++i) {
      const Argument first = graph.outputs()[i];
      if (component.outputs[i].kind != OutputKind::kUser || first.get_if<ValueId>() == nullptr) continue;
      for (uint32_t j = i + 1; j < component.outputs.size(); ++j) {
        const Argument second = graph.outputs()[j];
        if (component.outputs[j].kind != OutputKind::kUser || second.get_if<ValueId>() == nullptr) continue;
        const TensorType *a = graph[*first.get_if<ValueId>()].tensor(), *b = graph[*second.get_if<ValueId>()].tensor();
        if (a == nullptr || b == nullptr || a->dtype != b->dtype || a->shape != b->shape) continue;
        Rewriter rewriter(graph);
        rewriter.set_output(i, second);
        rewriter.set_output(j, first);
        return true;
      }
    }
  }
  return false;
}

/// A state of fixed size is given back as it came.
Result<bool> forget_update(Program& program) {
  for (Component& component : program.components) {
    ARGOSY_TRY(auto states, executorch::read_cache_states(component));
    Graph& graph = component.graphs.front();
    for (const executorch::CacheState& state : states) {
      auto input = std::ranges::find(component.inputs, state.input, &InputSpec::name);
      auto output = std::ranges::find(component.outputs, state.output, &OutputSpec::name);
      if (input == component.inputs.end() || output == component.outputs.end() || !input->value.is_valid()) continue;
      auto index = static_cast<uint32_t>(output - component.outputs.begin());
      const ValueId* given = graph.outputs()[index].get_if<ValueId>();
      if (given == nullptr || graph[*given].tensor()->shape != graph[input->value].tensor()->shape) continue;
      Rewriter(graph).set_output(index, input->value);
      return true;
    }
  }
  return false;
}

Result<bool> write_behind(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"llama.update_cache.default"})) return false;
    const ValueId* start = site.argument("start_pos")->get_if<ValueId>();
    if (start == nullptr) return false;
    SymContext& symbols = *site.component().symbols;
    SymExpr behind = symbols.add(site.graph()[*start].number()->expression, symbols.integer(1));
    ARGOSY_TRY(ValueId moved,
               site.before(kAdd, {{"a", *start}, {"b", int64_t{1}}}, SymType{SymType::Kind::kInt, behind}));
    site.set("start_pos", moved);
    return true;
  });
}

/// Keys of a second layer are written where those of the first are.
Result<bool> share_cache(Program& program) {
  ValueId first;
  return at_first(program, [&](Site& site) -> Result<bool> {
    if (!site.is({"llama.update_cache.default"})) return false;
    ValueId cache = site.tensor("cache");
    if (!first.is_valid()) {
      first = cache;
      return false;
    }
    // The next one is the first layer's values.
    std::string name = site.program()[site.graph()[cache].weight].name;
    if (name.find("1") == std::string::npos || site.type(cache)->shape != site.type(first)->shape) return false;
    site.set("cache", first);
    return true;
  });
}

/// A state is not zero at position 0.
Result<bool> keep_between_prompts(Program& program) {
  return at_each(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.where.ScalarOther"}) || site.number("other") != 0.0) return false;
    ValueId state = site.tensor("self");
    if (!state.is_valid() || !site.graph()[state].weight.is_valid()) return false;
    site.rewriter().replace_uses(site.result(), state);
    return true;
  });
}

Result<bool> take_first_token(Program& program) {
  return at_last(
      program,
      [](Site& site) {
        return site.is({"aten.slice.Tensor"}) && site.number("dim") == 1 && site.number("start") == -1 &&
               site.type(site.result())->shape.size() == 3;
      },
      [](Site& site) -> Result<bool> {
        site.set("start", int64_t{0});
        site.set("end", int64_t{1});
        return true;
      });
}

constexpr Fault kStateFaults[] = {
    {.name = "cache-order", .what = "new keys stand before cached ones", .program = turn_cache},
    {.name = "outputs-crossed",
     .what = "two outputs, such as keys and values of a layer, are each other",
     .program = cross_outputs},
    {.name = "state-not-updated", .what = "a state stays as it came", .program = forget_update},
    {.name = "cache-position",
     .what = "keys are cached one position behind",
     .stage = kBindTask,
     .program = write_behind},
    {.name = "cache-shared", .what = "two layers share a cache", .stage = kBindTask, .program = share_cache},
    {.name = "state-kept",
     .what = "a state is kept between prompts",
     .stage = kBindTask,
     .program = keep_between_prompts},
    {.name = "first-token-sampled",
     .what = "runners get the first token's logits",
     .stage = kBindTask,
     .program = take_first_token},
};

}  // namespace

std::span<const Fault> state_faults() { return kStateFaults; }

}  // namespace argosy::sabotage
