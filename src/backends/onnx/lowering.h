#pragma once

#include <optional>
#include <span>

#include "backends/onnx/document.h"
#include "backends/onnx/options.h"
#include "base/result.h"
#include "ir/program.h"
#include "passes/pipeline.h"

namespace argosy::onnx {

/// The passes before a program is translated: it is made functional, no-ops are dropped, ops decomposed as far as the
/// translations need it. `bind` changes its border, once it is functional.
Pipeline onnx_pipeline(const LoweringOptions& options, std::optional<Pass> bind = {});

/// Those of its passes that only this backend has, by name.
std::span<const NamedPass> lowering_passes();

/// One component as a model. The program has been through onnx_pipeline() and is verified. Every op that cannot be
/// translated is reported to `diagnostics`, with its place in the user's model; the first one is the error.
Result<Model> translate(const Program& program, const Component& component, const LoweringOptions& options,
                        Diagnostics& diagnostics);

/// Folds small constants, merges equal nodes, drops no-ops and unused nodes. Keeps inputs and outputs.
Status optimize(Model& model);

/// Only drops unused nodes: needed for every model.
void eliminate_dead_nodes(Model& model);

}  // namespace argosy::onnx
