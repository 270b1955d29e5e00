#pragma once

#include "backends/executorch/data_table.h"
#include "backends/executorch/document.h"
#include "backends/executorch/options.h"
#include "base/result.h"
#include "ir/program.h"
#include "passes/pipeline.h"

namespace argosy::executorch {

/// What a program goes through before it becomes methods: made functional and normalised, bounds set, weights
/// quantised, what XNNPACK computes cut out into graphs of its own (higher_order.delegate), everything else written
/// in ops that have kernels.
Pipeline executorch_pipeline(const LoweringOptions& options);

/// The passes of it that others lack, by name. Binding a task is none of them: its plan has no text.
std::span<const NamedPass> lowering_passes();

/// One component as a method, memory planned. The program has been through executorch_pipeline() and is verified. Every
/// op without a kernel is reported to `diagnostics`, with its place in the user's model; the first one is the error.
Result<Method> build_method(const Program& program, const Component& component, DataTable& data,
                            Diagnostics& diagnostics);

}  // namespace argosy::executorch
