#include "driver/export_hooks.h"

#include <string>

#include "passes/run_passes.h"

namespace argosy {
namespace {

/// The pipeline with calls of hooks->on_program between its passes; itself if there are no hooks.
Pipeline with_hooks(Pipeline pipeline, const ExportHooks* hooks) {
  if (hooks == nullptr || !hooks->on_program) return pipeline;
  auto call = [hooks](std::string stage) {
    return Pass{stage, [hooks, stage](Program& program, PassContext&) -> Result<bool> {
                  ARGOSY_TRY_STATUS(hooks->on_program(stage, program));
                  return true;
                }};
  };
  Pipeline hooked;
  hooked.add(call(std::string(kProgramRead)));
  for (const Pass& pass : pipeline.passes()) {
    hooked.add(pass);
    hooked.add(call(pass.name));
  }
  return hooked;
}

}  // namespace

Status run_export_passes(const Pipeline& pipeline, Program& program, const ExportHooks* hooks,
                         Diagnostics& diagnostics) {
  PassContext context{diagnostics};
  Watch* watch = hooks == nullptr ? nullptr : hooks->watch;
  ARGOSY_TRY([[maybe_unused]] bool has_changed, verify_and_run(with_hooks(pipeline, hooks), program, context,
                                                               watch == nullptr ? PipelineHooks{} : watch->hooks()));
  if (watch != nullptr) ARGOSY_TRY_STATUS(watch->dump_status());
  return verify_input(program, diagnostics);
}

}  // namespace argosy
