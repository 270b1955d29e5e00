#include <algorithm>
#include <functional>
#include <vector>

#include "base/text.h"
#include "frontends/capture/capture.h"
#include "frontends/capture/ties.h"
#include "tensor/source.h"

namespace argosy {
namespace {

constexpr size_t kMaxNamed = 10;
constexpr size_t kCompareScratch = size_t{4} << 20;

/// The tensor for a weight's name; null if there is none.
using Lookup = std::function<Result<TensorSourcePtr>(const std::string&)>;

bool is_shape_only(const Weight& weight) { return weight.source->recipe().starts_with("shape_only("); }

std::string shape_text(std::span<const int64_t> shape) {
  std::vector<std::string> dims;
  for (int64_t dim : shape) dims.push_back(format("{}", dim));
  return format("[{}]", join(dims, ", "));
}

/// The tensors for a program's weights, before the program gets them.
class Attachment {
 public:
  Attachment(Program& program, const Lookup& lookup, Ties ties)
      : program_(program), lookup_(lookup), ties_(std::move(ties)), sources_(program.weights.size()) {}

  Status run(Diagnostics* diagnostics) {
    std::vector<std::string> missing;
    for (size_t i = 0; i < sources_.size(); ++i) {
      ARGOSY_TRY_STATUS(find(i));
      if (sources_[i] == nullptr && is_shape_only(program_.weights[i])) missing.push_back(program_.weights[i].name);
    }
    if (!missing.empty()) {
      return fail(
          ErrorCode::kNotFound, format("the checkpoint has no tensor for {}", first_names(missing, kMaxNamed)),
          "give the checkpoint that belongs to this program; weights that it ties or stores under other names come "
          "by a weight plan: ExportOptions::weight_plan, python -m argosy.capture.weight_plan makes one");
    }
    std::vector<std::string> notes;
    ARGOSY_TRY(std::vector<WeightId> tied, compare_tied(notes));
    for (size_t i = 0; i < sources_.size(); ++i) {
      program_.weights[i].tied_to = tied[i];
      if (sources_[i] != nullptr) program_.weights[i].source = std::move(sources_[i]);
    }
    if (diagnostics != nullptr) diagnostics->notes.insert(diagnostics->notes.end(), notes.begin(), notes.end());
    return {};
  }

 private:
  Status find(size_t index) {
    const Weight& weight = program_.weights[index];
    TensorSourcePtr& source = sources_[index];
    bool is_state = weight.kind == WeightKind::kParameter || weight.kind == WeightKind::kBuffer;
    if (!is_state && !is_shape_only(weight)) return {};
    ARGOSY_TRY(source, lookup_(weight.name));
    if (source == nullptr && !is_shape_only(weight)) return {};  // the model computes it where a checkpoint lacks it
    // Tied weights are mostly stored once, under one of their names.
    if (const std::string* owner = ties_.owner(weight.name)) {
      for (const std::string& name : ties_.names(*owner)) {
        if (source != nullptr) break;
        ARGOSY_TRY(source, lookup_(name));
      }
    }
    if (source == nullptr && weight.tied_to.is_valid()) source = sources_[weight.tied_to.index];
    if (source == nullptr) return {};
    if (!std::ranges::equal(source->shape(), weight.shape)) {
      return fail(ErrorCode::kInvalidInput,
                  format("weight {} has shape {} in the program and {} in the checkpoint", quoted(weight.name),
                         shape_text(weight.shape), shape_text(source->shape())),
                  "capture the model again with the configuration of this checkpoint");
    }
    if (source->dtype() != weight.dtype) {
      ARGOSY_TRY(source, converted(std::move(source), weight.dtype));
    }
    return {};
  }

  /// What each weight is tied to now that there are values: one that differs from the others is on its own.
  Result<std::vector<WeightId>> compare_tied(std::vector<std::string>& notes) {
    std::vector<WeightId> tied(sources_.size());
    std::vector<std::vector<size_t>> different(sources_.size());  // by the weight that the program ties others to
    for (size_t i = 0; i < sources_.size(); ++i) {
      WeightId root = program_.weights[i].tied_to;
      if (!root.is_valid()) {
        different[i].push_back(i);
        continue;
      }
      if (sources_[i] == nullptr || sources_[root.index] == nullptr) {
        tied[i] = root;
        continue;
      }
      for (size_t other : different[root.index]) {
        ARGOSY_TRY(bool are_equal, have_equal_bytes(*sources_[other], *sources_[i], kCompareScratch));
        if (!are_equal) continue;
        tied[i] = WeightId{static_cast<uint32_t>(other)};
        sources_[i] = sources_[other];
        break;
      }
      if (tied[i].is_valid()) continue;
      different[root.index].push_back(i);
      notes.push_back(format(
          "the configuration ties {} and {}, but the checkpoint holds both and they differ: each keeps its own values, "
          "as in transformers; \"tie_word_embeddings\": false in config.json would say so",
          program_[root].name, program_.weights[i].name));
    }
    return tied;
  }

  Program& program_;
  const Lookup& lookup_;
  Ties ties_;
  std::vector<TensorSourcePtr> sources_;  // by weight; null: none, or none needed
};

Status attach_by(Program& program, const Lookup& lookup, Diagnostics* diagnostics) {
  ARGOSY_TRY(Ties ties, Ties::of(program));
  return Attachment(program, lookup, std::move(ties)).run(diagnostics);
}

}  // namespace

Status attach(Program& program, const Checkpoint& checkpoint, Diagnostics* diagnostics) {
  auto lookup = [&](const std::string& name) -> Result<TensorSourcePtr> {
    if (checkpoint.find(name) == nullptr) return nullptr;
    return checkpoint.tensor(name);
  };
  return attach_by(program, lookup, diagnostics);
}

Status attach(Program& program, const WeightPlan& plan, const Checkpoint& checkpoint, Diagnostics* diagnostics) {
  ARGOSY_TRY(std::vector<TensorSourcePtr> sources, plan.sources(checkpoint));
  auto lookup = [&](const std::string& name) -> Result<TensorSourcePtr> {
    const PlannedWeight* weight = plan.find(name);
    return weight == nullptr ? nullptr : sources[static_cast<size_t>(weight - plan.weights().data())];
  };
  return attach_by(program, lookup, diagnostics);
}

}  // namespace argosy
