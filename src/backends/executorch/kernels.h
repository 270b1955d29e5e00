#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/program.h"

namespace argosy::executorch {

/// Whether the runtime has a kernel of that name, "aten::add.out": its portable, optimised and quantised libraries, and
/// its own operations on numbers (a list made when Argosy is built, from the libraries of the executorch package), or
/// its library of ops for language models ("llama::custom_sdpa.out").
bool has_kernel(std::string_view name);

/// The kernel that computes what an op of a graph does and writes the result to a tensor that it is given:
/// "aten.add.Tensor" -> "aten::add.out", "aten.reshape.default" -> "aten::view_copy.out". Arguments may differ, as
/// those of "aten.to.dtype" and "aten::_to_copy.out". In-place ops and arithmetic on sizes have kernels that are given
/// no result tensor: "aten.index_put_.default" -> "aten::index_put_", "_operator.add" -> "executorch_prim::add.Scalar".
/// nullopt: none.
std::optional<std::string_view> kernel_for(std::string_view op);

/// Whether a node is legal: a kernel or a delegate takes it as it is, now or after the kernel rules.
bool takes(const Program& program, const Component& component, const Graph& graph, const Node& node);

/// An op whose kernel's name does not follow from its own.
struct IrregularKernel {
  std::string_view op, kernel;
};
std::span<const IrregularKernel> irregular_kernels();  // by op

}  // namespace argosy::executorch
