#pragma once

#include <memory>

#include "base/result.h"
#include "driver/backend_options.h"
#include "driver/export.h"

namespace argosy {

/// An export that torch.export.load reads without transformers: an archive with all components, or a folder with one
/// for each.
Result<std::unique_ptr<Export>> prepare_pt2(const ExportInput& input, const ExportDestination& destination,
                                            const Pt2Options& options, Diagnostics& diagnostics);

}  // namespace argosy
