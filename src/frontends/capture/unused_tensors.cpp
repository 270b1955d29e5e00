#include "frontends/capture/unused_tensors.h"

#include <algorithm>
#include <set>

namespace argosy {
namespace {

/// What of the checkpoint a weight of the plan is made of.
const std::vector<std::string>& sources_of(const WeightPlan& plan, const PlannedWeight& weight) {
  const PlannedWeight* owner = weight.origin == PlanOrigin::kTied ? plan.find(weight.tied_to) : nullptr;
  return owner == nullptr ? weight.sources : owner->sources;
}

bool is_computed(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with("position_ids");
}

}  // namespace

std::vector<std::string> unused_tensors(const Program& program, const WeightPlan* plan, const Checkpoint& checkpoint) {
  std::set<std::string> used, candidates;
  for (const Weight& weight : program.weights) {
    const PlannedWeight* planned = plan == nullptr ? nullptr : plan->find(weight.name);
    if (planned != nullptr) used.insert(sources_of(*plan, *planned).begin(), sources_of(*plan, *planned).end());
    if (plan == nullptr) used.insert(weight.name);
  }
  if (plan != nullptr) {
    candidates.insert(plan->unexpected().begin(), plan->unexpected().end());
    for (const PlannedWeight& weight : plan->weights()) {
      if (weight.name.starts_with(kAdapterWeights)) continue;  // files of their own have them
      candidates.insert(weight.sources.begin(), weight.sources.end());
    }
  } else {
    for (const CheckpointTensor& tensor : checkpoint.tensors()) {
      if (!is_computed(tensor.name)) candidates.insert(tensor.name);
    }
  }
  std::vector<std::string> unused;
  std::ranges::set_difference(candidates, used, std::back_inserter(unused));
  return unused;
}

}  // namespace argosy
