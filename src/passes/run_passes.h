#pragma once

#include "base/result.h"
#include "passes/pipeline.h"

namespace argosy {

/// verify() with all problems in `diagnostics` and the first as the error.
Status verify_input(const Program& program, Diagnostics& diagnostics);

/// Verifies a program that comes from outside, since passes trust it, and runs the pipeline. A pipeline that begins
/// with the pass verify is left to do it itself, so that its failure is that of a pass.
Result<bool> verify_and_run(const Pipeline& pipeline, Program& program, PassContext& context,
                            const PipelineHooks& hooks);

}  // namespace argosy
