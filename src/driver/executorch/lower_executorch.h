#pragma once

#include <filesystem>

#include "backends/executorch/document.h"
#include "base/result.h"
#include "driver/backend_options.h"
#include "engines/model.h"
#include "io/tensor_writer.h"
#include "ir/program.h"
#include "passes/pipeline.h"

namespace argosy {

/// The components of any program as methods of one ExecuTorch program: under their names, a single one as "forward", or
/// as options.task says. The program is verified first. Unbounded dims get a usual bound, with a note in `diagnostics`.
/// Every op that has no kernel is in `diagnostics`.
Result<executorch::Document> lower_to_executorch(Program program, const ExecutorchOptions& options,
                                                 const executorch::ModelFacts& facts, Diagnostics& diagnostics);

/// The passes of that lowering for this program, to inspect them.
Result<Pipeline> executorch_passes(const Program& program, const ExecutorchOptions& options,
                                   const executorch::ModelFacts& facts, Diagnostics& diagnostics);

/// The program as a .pte file with everything inside; it appears complete or not at all. For programs without a model's
/// folder: archives, IR texts, live models.
Status write_executorch_program(const std::filesystem::path& path, Program program, const ExecutorchOptions& options,
                                const TensorWriteOptions& stream, Diagnostics& diagnostics);

/// What runners ask of a model, from its configuration.
executorch::ModelFacts model_facts(const engines::SourceModel& model);

}  // namespace argosy
