#pragma once

#include <memory>

#include "base/result.h"
#include "driver/backend_options.h"
#include "driver/export.h"

namespace argosy {

/// An export for ExecuTorch's runtime: NAME.pte (with NAME.ptd beside it, if data is kept apart), or a folder with
/// model.pte, the other files that runners need, and a manifest.
Result<std::unique_ptr<Export>> prepare_executorch(const ExportInput& input, const ExportDestination& destination,
                                                   const ExecutorchOptions& options, Diagnostics& diagnostics);

}  // namespace argosy
