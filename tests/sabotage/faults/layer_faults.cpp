// Norms, feed-forward layers, experts, convolutions, recurrences and logits.

#include <cmath>

#include "faults/bytes.h"
#include "faults/fault.h"
#include "faults/site.h"
#include "passes/aten_schemas.h"

namespace argosy::sabotage {
namespace {

/// act(gate) * up becomes act(up) * gate.
Result<bool> swap_gate_and_up(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.mul.Tensor"})) return false;
    ValueId activated = site.tensor("self"), up = site.tensor("other");
    if (!site.is_made_by(activated, {"aten.silu.default", "aten.gelu.default", "aten.relu.default"})) return false;
    ValueId gate = site.producer_of(activated).tensor("self");
    if (!site.is_made_by(gate, {"aten.linear.default"}) || !site.is_made_by(up, {"aten.linear.default"})) return false;
    Site first = site.producer_of(gate), second = site.producer_of(up);
    ValueId weight = first.tensor("weight");
    first.set("weight", second.tensor("weight"));
    second.set("weight", weight);
    return true;
  });
}

Result<bool> change_gelu(Program& program) {
  return at_each(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.gelu.default"})) return false;
    const std::string* kind = site.argument("approximate")->get_if<std::string>();
    site.set("approximate", std::string(kind != nullptr && *kind == "tanh" ? "none" : "tanh"));
    return true;
  });
}

Result<bool> replace_silu(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.silu.default"})) return false;
    ARGOSY_TRY(ValueId other,
               site.before(aten::kGelu, {{"self", site.tensor("self")}}, fresh(*site.type(site.result()))));
    site.rewriter().replace(site.id(), std::vector<ValueId>{other});
    return true;
  });
}

Result<bool> drop_residual(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.add.Tensor"}) || !site.tensor("self").is_valid()) return false;
    for (std::string_view name : {"other", "self"}) {
      ValueId branch = site.tensor(name);
      if (!branch.is_valid() || !site.is_made_by(site.origin(branch), {"aten.linear.default"})) continue;
      if (site.type(branch)->shape != site.type(site.result())->shape) continue;
      site.rewriter().replace_uses(site.result(), branch);
      return true;
    }
    return false;
  });
}

Result<bool> drop_bias(Program& program, std::initializer_list<std::string_view> ops) {
  return at_first(program, [&](Site& site) -> Result<bool> {
    if (!site.is(ops) || !site.tensor("bias").is_valid()) return false;
    site.set("bias", None{});
    return true;
  });
}

/// RMS norms add epsilon to a mean; layer norms have it as an argument.
Result<bool> scale_epsilon(Program& program, double factor) {
  return at_each(program, [&](Site& site) -> Result<bool> {
    if (site.is({"aten.layer_norm.default", "aten.rms_norm.default"}) && site.number("eps") > 0) {
      site.set("eps", site.number("eps") * factor);
      return true;
    }
    if (!site.is({"aten.add.Tensor", "aten.add.Scalar"})) return false;
    double epsilon = site.number("other");
    if (!(epsilon > 0 && epsilon < 0.1) || !site.is_made_by(site.tensor("self"), {"aten.mean.dim"})) return false;
    site.set("other", epsilon * factor);
    return true;
  });
}

/// Norms whose weight is stored as what is added to one.
Result<bool> drop_norm_offset(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.add.Tensor", "aten.add.Scalar"}) || site.number("other") != 1.0) return false;
    if (site.weight(site.tensor("self")) == nullptr) return false;
    site.set("other", with_number(*site.argument("other"), 0.0));
    return true;
  });
}

Result<bool> drop_embedding_factor(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.mul.Tensor"}) || !site.is_made_by(site.tensor("self"), {"aten.embedding.default"}))
      return false;
    site.rewriter().replace_uses(site.result(), site.tensor("self"));
    return true;
  });
}

/// The worst experts instead of the best.
Result<bool> choose_worst_experts(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.topk.default"})) return false;
    site.set("largest", false);
    return true;
  });
}

Result<bool> shift_experts(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (site.op().find("grouped_mm") == std::string_view::npos) return false;
    Weight* experts = site.weight(site.tensor("weight"));
    if (experts == nullptr) experts = site.weight(site.tensor("mat2"));
    if (experts == nullptr || experts->shape.size() != 3) return false;
    ARGOSY_TRY(experts->source, shifted(experts->source, 0));
    return true;
  });
}

Result<bool> reverse_kernel(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.conv1d.default"})) return false;
    ValueId kernel = site.tensor("weight");
    while (site.is_made_by(kernel, {"aten.unsqueeze.default", "aten.squeeze.dim"}))
      kernel = site.producer_of(kernel).tensor("self");
    Weight* weight = site.weight(kernel);
    if (weight == nullptr || weight->shape.back() < 2) return false;
    ARGOSY_TRY(weight->source, reversed(weight->source, static_cast<int>(weight->shape.size()) - 1));
    return true;
  });
}

Result<bool> drop_softplus(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.softplus.default"})) return false;
    site.rewriter().replace_uses(site.result(), site.tensor("self"));
    return true;
  });
}

/// What is called logits [batch, tokens, words] is in the order of the last token to the first.
Result<bool> turn_logits(Program& program) {
  for (Component& component : program.components) {
    Graph& graph = component.graphs.front();
    for (uint32_t i = 0; i < component.outputs.size(); ++i) {
      const ValueId* logits = graph.outputs()[i].get_if<ValueId>();
      if (component.outputs[i].name != "logits" || logits == nullptr || graph[*logits].tensor()->shape.size() != 3)
        continue;
      Rewriter rewriter(graph);
      Site site(program, component, rewriter, graph[*logits].producer);
      ARGOSY_TRY(ValueId turned, site.after(aten::kFlip, {{"self", *logits}, {"dims", IntList{int64_t{1}}}},
                                            fresh(*graph[*logits].tensor())));
      rewriter.set_output(i, turned);
      return true;
    }
  }
  return false;
}

constexpr Fault kLayerFaults[] = {
    {.name = "gate-and-up", .what = "gate and up are swapped", .program = swap_gate_and_up},
    {.name = "gelu-kind", .what = "gelu by tanh instead of erf, or the other way round", .program = change_gelu},
    {.name = "silu-as-gelu", .what = "gelu instead of silu", .program = replace_silu},
    {.name = "residual-dropped", .what = "a layer's input is not added", .program = drop_residual},
    {.name = "bias-dropped",
     .what = "a linear layer lacks its bias",
     .program = [](Program& program) { return drop_bias(program, {"aten.linear.default", "aten.addmm.default"}); }},
    {.name = "norm-bias-dropped",
     .what = "a layer norm lacks its bias",
     .program = [](Program& program) { return drop_bias(program, {"aten.layer_norm.default"}); }},
    {.name = "epsilon-tenfold",
     .what = "epsilon of norms is ten times larger",
     .program = [](Program& program) { return scale_epsilon(program, 10); }},
    {.name = "epsilon-tenth",
     .what = "epsilon of norms is ten times smaller",
     .program = [](Program& program) { return scale_epsilon(program, 0.1); }},
    {.name = "norm-offset-dropped", .what = "one is not added to a norm's weight", .program = drop_norm_offset},
    {.name = "embedding-factor-dropped", .what = "embeddings are not scaled", .program = drop_embedding_factor},
    {.name = "experts-worst", .what = "the worst experts are chosen", .program = choose_worst_experts},
    {.name = "experts-shifted", .what = "experts have their neighbour's weights", .program = shift_experts},
    {.name = "kernel-reversed", .what = "a convolution's kernel is reversed", .program = reverse_kernel},
    {.name = "softplus-dropped", .what = "a recurrence lacks its softplus", .program = drop_softplus},
    {.name = "logits-of-first-token",
     .what = "logits are in reverse order: the first token's are the last",
     .program = turn_logits},
};

}  // namespace

std::span<const Fault> layer_faults() { return kLayerFaults; }

}  // namespace argosy::sabotage
