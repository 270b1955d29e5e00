#pragma once

#include <optional>
#include <span>

#include "backends/onnx/document.h"
#include "backends/onnx/options.h"
#include "base/result.h"
#include "ir/program.h"
#include "passes/pipeline.h"

namespace argosy::onnx {

/// What a program goes through before it is translated: made functional, no-ops dropped, taken apart as far as the
/// translations need it. `bind` changes what callers see of it, once it is functional.
Pipeline onnx_pipeline(const LoweringOptions& options, std::optional<Pass> bind = {});

/// The passes of it that others lack, by name.
std::span<const NamedPass> lowering_passes();

/// One component as a model. The program has been through onnx_pipeline() and is verified. Every op that cannot be
/// translated is reported to `diagnostics`, with its place in the user's model; the first one is the error.
Result<Model> translate(const Program& program, const Component& component, const LoweringOptions& options,
                        Diagnostics& diagnostics);

/// Folds small constants, merges equal nodes, drops what does nothing and what nobody uses. Keeps inputs and outputs.
Status optimize(Model& model);

/// Only the last of these: what a model must be free of in any case.
void eliminate_dead_nodes(Model& model);

}  // namespace argosy::onnx
