#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "backends/executorch/method_values.h"
#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// The node's arguments as a kernel takes them, without its results. Kernels that write to a given tensor take the op's
/// own arguments, except those that describe the tensor to be made. `index_of` gives the method's value for one of the
/// graph.
Result<std::vector<ValueIndex>> bind_arguments(const OpSchema& schema, const Node& node, std::string_view kernel,
                                               MethodValues& values,
                                               const std::function<ValueIndex(ValueId)>& index_of);

}  // namespace argosy::executorch
