#include "backends/executorch/generation/specialise.h"

#include "border/border.h"

namespace argosy::executorch {

void specialise(Component& component, const std::map<std::string, SymExpr>& replacements) {
  substitute_symbols(component, replacements);
  forget_trace(component);
}

}  // namespace argosy::executorch
