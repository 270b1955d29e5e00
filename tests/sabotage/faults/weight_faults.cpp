// Which tensor of the checkpoint is which weight.

#include "base/text.h"
#include "faults/bytes.h"
#include "faults/fault.h"
#include "faults/site.h"

namespace argosy::sabotage {
namespace {

/// The embedding is given the weight of the last linear layer of its shape, or the other way round where a later one
/// is tied.
Result<bool> cross_tied(Program& program) {
  for (Component& component : program.components) {
    Graph& graph = component.graphs.front();
    Rewriter rewriter(graph);
    NodeId embedding;
    for (NodeId node : graph.nodes()) {
      Site site(program, component, rewriter, node);
      if (site.is({"aten.embedding.default"}) && !embedding.is_valid()) embedding = node;
      if (!site.is({"aten.linear.default"}) || !embedding.is_valid()) continue;
      Site tokens(program, component, rewriter, embedding);
      ValueId head = site.tensor("weight"), table = tokens.tensor("weight");
      if (site.weight(head) == site.weight(table) || site.weight(head) == nullptr) continue;
      if (site.type(head)->shape != site.type(table)->shape) continue;
      tokens.set("weight", head);
      return true;
    }
  }
  return false;
}

/// The first weights of two dims that two neighbouring layers have get each other's tensors.
Result<bool> cross_layers(Program& program) {
  for (Weight& first : program.weights) {
    size_t number = first.name.find(".0.");
    if (number == std::string::npos || first.shape.size() != 2 || first.tied_to.is_valid()) continue;
    std::string name = first.name;
    name.replace(number, 3, ".1.");
    auto second = program.find_weight(name);
    if (!second || program[*second].shape != first.shape || program[*second].tied_to.is_valid()) continue;
    std::swap(first.source, program.weights[second->index].source);
    return true;
  }
  return false;
}

Result<bool> transpose(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.linear.default"})) return false;
    Weight* weight = site.weight(site.tensor("weight"));
    if (weight == nullptr || weight->shape.size() != 2 || weight->shape[0] != weight->shape[1]) return false;
    ARGOSY_TRY(weight->source, transposed(weight->source, {1, 0}));
    return true;
  });
}

Result<bool> shift_rows(Program& program) {
  return at_first(program, [](Site& site) -> Result<bool> {
    if (!site.is({"aten.linear.default"})) return false;
    Weight* weight = site.weight(site.tensor("weight"));
    if (weight == nullptr || weight->shape.size() != 2) return false;
    ARGOSY_TRY(weight->source, shifted(weight->source, 0));
    return true;
  });
}

Result<bool> shift_positions(Program& program) {
  for (Weight& weight : program.weights) {
    bool is_table = weight.name.find("position_embedding") != std::string::npos ||
                    weight.name.find("embed_positions") != std::string::npos || weight.name.ends_with("wpe.weight");
    if (!is_table || weight.shape.size() < 2) continue;
    ARGOSY_TRY(weight.source, shifted(weight.source, static_cast<int>(weight.shape.size()) - 2));
    return true;
  }
  return false;
}

/// Parameters are stored with 8 bits of precision, as if somebody had asked for it.
Result<bool> round_to_bfloat16(Program& program) {
  bool has_found = false;
  for (Weight& weight : program.weights) {
    if (weight.kind != WeightKind::kParameter || weight.dtype != DType::kF32) continue;
    ARGOSY_TRY(TensorSourcePtr rounded, converted(weight.source, DType::kBF16));
    ARGOSY_TRY(weight.source, converted(std::move(rounded), DType::kF32));
    has_found = true;
  }
  return has_found;
}

constexpr Fault kWeightFaults[] = {
    {.name = "tied-weight-crossed", .what = "the input embeddings are the output's", .program = cross_tied},
    {.name = "layers-crossed", .what = "two layers have each other's weights", .program = cross_layers},
    {.name = "weight-transposed", .what = "a square weight is transposed", .program = transpose},
    {.name = "rows-shifted", .what = "rows of a weight are shifted by one", .program = shift_rows},
    {.name = "positions-shifted", .what = "learned positions are shifted by one", .program = shift_positions},
    {.name = "rounded-to-bfloat16", .what = "weights of float32 are rounded to bfloat16", .program = round_to_bfloat16},
};

}  // namespace

std::span<const Fault> weight_faults() { return kWeightFaults; }

}  // namespace argosy::sabotage
