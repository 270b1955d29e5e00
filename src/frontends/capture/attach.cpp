#include <algorithm>
#include <functional>
#include <vector>

#include "base/text.h"
#include "frontends/capture/capture.h"

namespace argosy {
namespace {

constexpr size_t kMaxNamed = 10;

/// The tensor for a weight's name; null if there is none.
using Lookup = std::function<Result<TensorSourcePtr>(const std::string&)>;

bool is_shape_only(const Weight& weight) { return weight.source->recipe().starts_with("shape_only("); }

std::string shape_text(std::span<const int64_t> shape) {
  std::vector<std::string> dims;
  for (int64_t dim : shape) dims.push_back(format("{}", dim));
  return format("[{}]", join(dims, ", "));
}

Status attach_by(Program& program, const Lookup& lookup) {
  std::vector<TensorSourcePtr> sources(program.weights.size());
  std::vector<std::string> missing;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const Weight& weight = program.weights[i];
    bool is_state = weight.kind == WeightKind::kParameter || weight.kind == WeightKind::kBuffer;
    if (!is_state && !is_shape_only(weight)) continue;
    ARGOSY_TRY(sources[i], lookup(weight.name));
    if (sources[i] == nullptr && !is_shape_only(weight)) continue;  // the model computes it where a checkpoint lacks it
    if (sources[i] == nullptr) {
      // Tied weights are stored once, under one of their names; the earlier weight was looked up before.
      if (weight.tied_to.is_valid()) sources[i] = sources[weight.tied_to.index];
      if (sources[i] == nullptr) missing.push_back(weight.name);
      continue;
    }
    if (!std::ranges::equal(sources[i]->shape(), weight.shape)) {
      return fail(ErrorCode::kInvalidInput,
                  format("weight {} has shape {} in the program and {} in the checkpoint", quoted(weight.name),
                         shape_text(weight.shape), shape_text(sources[i]->shape())),
                  "capture the model again with the configuration of this checkpoint");
    }
    if (sources[i]->dtype() != weight.dtype) {
      ARGOSY_TRY(sources[i], converted(std::move(sources[i]), weight.dtype));
    }
  }
  if (!missing.empty()) {
    size_t count = missing.size();
    missing.resize(std::min(count, kMaxNamed));
    std::string more = count > kMaxNamed ? format(" and {} more", count - kMaxNamed) : std::string();
    return fail(ErrorCode::kNotFound, format("the checkpoint has no tensor for {}{}", join(missing, ", "), more),
                "give the checkpoint that belongs to this program; where its tensors are tied or have other names, also a "
                "weight plan, which python -m argosy.capture.weight_plan makes");
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != nullptr) program.weights[i].source = std::move(sources[i]);
  }
  return {};
}

}  // namespace

Status attach(Program& program, const Checkpoint& checkpoint) {
  return attach_by(program, [&](const std::string& name) -> Result<TensorSourcePtr> {
    if (checkpoint.find(name) == nullptr) return nullptr;
    return checkpoint.tensor(name);
  });
}

Status attach(Program& program, const WeightPlan& plan, const Checkpoint& checkpoint) {
  ARGOSY_TRY(std::vector<TensorSourcePtr> sources, plan.sources(checkpoint));
  return attach_by(program, [&](const std::string& name) -> Result<TensorSourcePtr> {
    const PlannedWeight* weight = plan.find(name);
    return weight == nullptr ? nullptr : sources[static_cast<size_t>(weight - plan.weights().data())];
  });
}

}  // namespace argosy
