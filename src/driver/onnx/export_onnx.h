#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/backend_options.h"
#include "driver/export.h"

namespace argosy {

/// An export for ONNX Runtime: one model NAME.onnx with its data beside it, or a folder for an engine: graphs, the data
/// that they share, what the engine wants besides, and a manifest.
Result<std::unique_ptr<Export>> prepare_onnx(const ExportInput& input, const ExportDestination& destination,
                                             const OnnxOptions& options, Diagnostics& diagnostics);

/// One of the ways in which a bundle stores a model.
struct OnnxVariant {
  std::string name;
  ExportInput input;
  OnnxOptions options;
  bool is_kept = false;  // the destination has it already: its files stay as they are
};

/// The same for several variants, at least one, to a folder: in one bundle if the engine tells them by the names of
/// their files, else in a folder each, called as the variant. The first of one bundle is what the engine opens by
/// itself. Those that are kept must be what this export would write, which graphs, sizes and beginnings of tensors
/// show.
Result<std::unique_ptr<Export>> prepare_onnx_variants(std::vector<OnnxVariant> variants,
                                                      const ExportDestination& destination, Diagnostics& diagnostics);

}  // namespace argosy
