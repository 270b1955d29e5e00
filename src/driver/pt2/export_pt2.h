#pragma once

#include <memory>

#include "base/result.h"
#include "driver/export.h"
#include "driver/export_hooks.h"

namespace argosy {

/// An export that torch.export.load reads without transformers: an archive with all components, or a folder with one
/// for each.
Result<std::unique_ptr<Export>> prepare_pt2(const ExportInput& input, const ExportDestination& destination,
                                            const ExportHooks* hooks, Diagnostics& diagnostics);

}  // namespace argosy
