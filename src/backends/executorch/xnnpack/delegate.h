#pragma once

#include <string>

#include "backends/executorch/data_table.h"
#include "backends/executorch/document.h"
#include "backends/executorch/options.h"
#include "base/result.h"
#include "ir/program.h"
#include "passes/pass.h"

namespace argosy::executorch {

/// The first argument of a higher_order.delegate node that XNNPACK computes. Operands and results are tensors; the
/// sub-graph binds its own weights.
inline constexpr std::string_view kXnnpackBackend = "XnnpackBackend";

/// "delegate-to-xnnpack": cuts what XNNPACK computes out of the entry graph into sub-graphs, as few and as large as can
/// be without a cycle. Parts without a product or a convolution of their own stay where they are if that saves a copy.
Pass delegate_to_xnnpack();

/// The sub-graph as XNNPACK's backend reads it. External ids count operands, then results. Weights are data of the
/// program, by name.
Result<Delegate> build_xnnpack_delegate(const Program& program, const Component& component, const Graph& graph,
                                        DataTable& data);

}  // namespace argosy::executorch
