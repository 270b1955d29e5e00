#include "backends/executorch/rules.h"

namespace argosy::executorch {

std::span<const RewriteRule> xnnpack_rules() { return {}; }

}  // namespace argosy::executorch
