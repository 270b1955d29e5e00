#include "passes/pipeline.h"

#include <chrono>
#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "ir/verify.h"
#include "passes/compact_ids.h"
#include "passes/decompose_complex.h"
#include "passes/decompose_custom_ops.h"
#include "passes/eliminate_dead_code.h"
#include "passes/fix_dims.h"
#include "passes/functionalise.h"
#include "passes/merge_equal_nodes.h"
#include "passes/normalise.h"
#include "passes/verify_program.h"

namespace argosy {
namespace {

// In alphabetical order.
constexpr NamedPass kPasses[] = {
    {"compact-ids", "number nodes and values densely, without gaps of erased ones", compact_ids},
    {"decompose-complex", "complex tensors become real ones with a last dim of 2; after normalise", decompose_complex},
    {"decompose-custom-ops", "take ops apart that plain PyTorch does not have", decompose_custom_ops},
    {"eliminate-dead-code", "remove nodes that have no effect and whose results nobody uses", eliminate_dead_code},
    {"fix-dims", "put the number in the place of a size that has one value only", fix_dims},
    {"functionalise", "replace writes to tensors by new tensors; what inputs and buffers get becomes a result",
     functionalise},
    {"merge-equal-nodes", "compute once what is computed twice from the same values; after functionalise",
     merge_equal_nodes},
    {"normalise", "one op for one thing, and nothing that does nothing; after functionalise", normalise},
    {"verify", "check structure and every node against its schema; changes nothing", verify_program},
};

Result<bool> run_guarded(const Pass& pass, Program& program, PassContext& context, const PipelineHooks& hooks) {
  try {
    Result<bool> changed = pass.run(program, context);
    if (changed && *changed && hooks.verify_each) {
      if (Status status = verify_first(program); !status) {
        Error error = std::move(status).error();
        error.code = ErrorCode::kInternal;
        return fail(error.in("the check after the pass: the pass broke the program"));
      }
    }
    return changed;
  } catch (const InternalError& error) {
    return fail(ErrorCode::kInternal, error.what(), "this is a bug in argosy; please report it with the reproducer");
  }
}

}  // namespace

Pipeline& Pipeline::add(Pass pass) {
  passes_.push_back(std::move(pass));
  return *this;
}

Result<bool> Pipeline::run(Program& program, PassContext& context, const PipelineHooks& hooks) const {
  bool has_changed = false;
  for (size_t i = 0; i < passes_.size(); ++i) {
    const Pass& pass = passes_[i];
    if (hooks.before_pass) hooks.before_pass(pass.name, program);
    std::optional<Program> before;
    if (hooks.on_failure) before = program;
    auto start = std::chrono::steady_clock::now();
    Result<bool> result = run_guarded(pass, program, context, hooks);
    if (!result) {
      Error error = std::move(result).error();
      error.in(format("pass {}", pass.name));
      if (hooks.on_failure) {
        std::vector<std::string> remaining;
        for (size_t j = i; j < passes_.size(); ++j) remaining.push_back(passes_[j].name);
        hooks.on_failure(*before, remaining, error);
      }
      return fail(std::move(error));
    }
    has_changed |= *result;
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (hooks.after_pass) hooks.after_pass(pass.name, program, *result, elapsed.count());
  }
  return has_changed;
}

std::span<const NamedPass> all_passes() { return kPasses; }

Result<Pipeline> parse_pipeline(std::string_view names) {
  Pipeline pipeline;
  while (!names.empty()) {
    size_t comma = names.find(',');
    std::string_view name = names.substr(0, comma);
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
    const NamedPass* found = nullptr;
    std::vector<std::string> known;
    for (const NamedPass& pass : all_passes()) {
      known.emplace_back(pass.name);
      if (pass.name == name) found = &pass;
    }
    if (found == nullptr) {
      return fail(ErrorCode::kInvalidInput, format("there is no pass {}", quoted(name)),
                  format("the passes are: {}", join(known, ", ")));
    }
    pipeline.add(found->make());
  }
  return pipeline;
}

}  // namespace argosy
