#pragma once

#include "base/result.h"
#include "passes/pipeline.h"

namespace argosy {

/// Runs verify(): all problems go to `diagnostics`, the first is the error.
Status verify_input(const Program& program, Diagnostics& diagnostics);

/// Verifies a program that comes from outside, since passes trust it, and runs the pipeline. A pipeline that begins
/// with the pass `verify` does this itself, so that a failure is reported as that pass's.
Result<bool> verify_and_run(const Pipeline& pipeline, Program& program, PassContext& context,
                            const PipelineHooks& hooks);

}  // namespace argosy
