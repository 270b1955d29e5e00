#include "backends/executorch/rules/families.h"

namespace argosy::executorch {

std::span<const RewriteRule> shape_kernel_rules() { return {}; }

}  // namespace argosy::executorch
