#pragma once

#include <memory>

#include "base/result.h"
#include "driver/backend_options.h"
#include "driver/export.h"

namespace argosy {

/// An export for ONNX Runtime: one model NAME.onnx with its data beside it, or a folder for an engine: graphs, the data
/// that they share, what the engine wants besides, and a manifest.
Result<std::unique_ptr<Export>> prepare_onnx(const ExportInput& input, const ExportDestination& destination,
                                             const OnnxOptions& options, Diagnostics& diagnostics);

}  // namespace argosy
