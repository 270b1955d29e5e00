#pragma once

#include <optional>
#include <string_view>

namespace argosy::executorch {

/// Whether the runtime has a kernel of that name, "aten::add.out": its portable, optimised and quantised libraries, and
/// its own operations on numbers. The list is made when Argosy is built, from the libraries of the executorch package.
bool has_kernel(std::string_view name);

/// The kernel that computes what an op of a graph does and writes the result to a tensor that it is given:
/// "aten.add.Tensor" -> "aten::add.out", "aten.reshape.default" -> "aten::view_copy.out". nullopt: none.
std::optional<std::string_view> kernel_for(std::string_view op);

}  // namespace argosy::executorch
