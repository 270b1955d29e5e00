#pragma once

#include <optional>
#include <string_view>

namespace argosy::executorch {

/// The runtime's own kernel for an op on numbers: "_operator.add" -> "executorch_prim::add.Scalar". It writes its last
/// argument. nullopt: there is none.
std::optional<std::string_view> number_kernel(std::string_view op);

}  // namespace argosy::executorch
