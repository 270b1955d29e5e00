#include "backends/executorch/rules.h"

namespace argosy::executorch {

std::span<const RewriteRule> composite_rules() { return {}; }

}  // namespace argosy::executorch
