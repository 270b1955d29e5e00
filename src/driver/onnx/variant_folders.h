#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/export.h"
#include "driver/onnx/bundle_export.h"

namespace argosy {

/// An export for a folder of its own.
struct VariantFolder {
  std::string name;
  std::unique_ptr<OnnxExport> bundle;
  bool is_kept = false;  // the destination has it already, and it stays as it is
};

/// An export that is a folder of others, each whole, and a manifest that lists them. Their weights are written
/// together: what they share of the checkpoint is read once. `capture` as Export has it.
std::unique_ptr<Export> variant_folders(std::vector<VariantFolder> folders, const ExportDestination& destination,
                                        const Checkpoint* checkpoint, JsonView capture);

}  // namespace argosy
