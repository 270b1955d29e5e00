#include "backends/executorch/kernels.h"

namespace argosy::executorch {

bool has_kernel(std::string_view) { return false; }

std::optional<std::string_view> kernel_for(std::string_view) { return std::nullopt; }

}  // namespace argosy::executorch
