#include "driver/export_hooks.h"

#include <string>

namespace argosy {

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

}  // namespace argosy
