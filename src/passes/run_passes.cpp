#include "passes/run_passes.h"

#include "ir/verify.h"

namespace argosy {

Status verify_input(const Program& program, Diagnostics& diagnostics) {
  Diagnostics found = verify(program);
  if (found.errors.empty()) return {};
  Error first = found.errors.front();
  for (Error& error : found.errors) diagnostics.errors.push_back(std::move(error));
  return fail(std::move(first));
}

Result<bool> verify_and_run(const Pipeline& pipeline, Program& program, PassContext& context,
                            const PipelineHooks& hooks) {
  bool begins_with_verify = !pipeline.passes().empty() && pipeline.passes().front().name == "verify";
  if (!begins_with_verify) ARGOSY_TRY_STATUS(verify_input(program, context.diagnostics));
  return pipeline.run(program, context, hooks);
}

}  // namespace argosy
