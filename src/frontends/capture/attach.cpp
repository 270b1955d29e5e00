#include <vector>

#include "base/text.h"
#include "frontends/capture/capture.h"

namespace argosy {
namespace {

constexpr size_t kMaxNamed = 10;

bool is_shape_only(const Weight& weight) { return weight.source->recipe().starts_with("shape_only("); }

std::string shape_text(std::span<const int64_t> shape) {
  std::vector<std::string> dims;
  for (int64_t dim : shape) dims.push_back(format("{}", dim));
  return format("[{}]", join(dims, ", "));
}

}  // namespace

Status attach(Program& program, const Checkpoint& checkpoint) {
  std::vector<TensorSourcePtr> sources(program.weights.size());
  std::vector<std::string> missing;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const Weight& weight = program.weights[i];
    if (!is_shape_only(weight)) continue;
    const CheckpointTensor* tensor = checkpoint.find(weight.name);
    if (tensor == nullptr) {
      // Tied weights are stored once, under one of their names; the earlier weight was looked up before.
      TensorSourcePtr tied = weight.tied_to.is_valid() ? sources[weight.tied_to.index] : nullptr;
      if (tied == nullptr) missing.push_back(weight.name);
      sources[i] = std::move(tied);
      continue;
    }
    if (tensor->shape != weight.shape) {
      return fail(ErrorCode::kInvalidInput,
                  format("weight {} has shape {} in the program and {} in the checkpoint", quoted(weight.name),
                         shape_text(weight.shape), shape_text(tensor->shape)),
                  "capture the model again with the configuration of this checkpoint");
    }
    ARGOSY_TRY(sources[i], checkpoint.tensor(weight.name));
    if (tensor->dtype != weight.dtype) {
      ARGOSY_TRY(sources[i], converted(std::move(sources[i]), weight.dtype));
    }
  }
  if (!missing.empty()) {
    size_t count = missing.size();
    missing.resize(std::min(count, kMaxNamed));
    std::string more = count > kMaxNamed ? format(" and {} more", count - kMaxNamed) : std::string();
    return fail(ErrorCode::kNotFound, format("the checkpoint has no tensor for {}{}", join(missing, ", "), more),
                "give the checkpoint that belongs to this program");
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != nullptr) program.weights[i].source = std::move(sources[i]);
  }
  return {};
}

}  // namespace argosy
