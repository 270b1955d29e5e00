#pragma once

#include "backends/executorch/data_table.h"
#include "backends/executorch/document.h"
#include "backends/executorch/options.h"
#include "base/result.h"
#include "ir/program.h"
#include "passes/pipeline.h"

namespace argosy::executorch {

/// The passes before a program becomes methods: it is made functional and normalised, bounds are set, weights
/// quantised, what XNNPACK computes is cut out into sub-graphs (higher_order.delegate), and everything else is written
/// in ops that have kernels.
Pipeline executorch_pipeline(const LoweringOptions& options);

/// Those of its passes that only this backend has, by name. Not bind-task: its plan has no text form.
std::span<const NamedPass> lowering_passes();

/// One component as a method, memory planned. The program has been through executorch_pipeline() and is verified. Every
/// op without a kernel is reported to `diagnostics`, with its place in the user's model; the first one is the error.
Result<Method> build_method(const Program& program, const Component& component, DataTable& data,
                            Diagnostics& diagnostics);

}  // namespace argosy::executorch
