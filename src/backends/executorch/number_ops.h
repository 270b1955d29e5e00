#pragma once

#include <optional>
#include <string_view>

namespace argosy::executorch {

/// The runtime's own operation for one of a graph on numbers: "_operator.add" -> "executorch_prim::add.Scalar". It
/// writes its last argument. nullopt: none.
std::optional<std::string_view> number_kernel(std::string_view op);

}  // namespace argosy::executorch
