#include "backends/executorch/rules.h"

namespace argosy::executorch {

std::span<const RewriteRule> kernel_rules() { return {}; }

}  // namespace argosy::executorch
