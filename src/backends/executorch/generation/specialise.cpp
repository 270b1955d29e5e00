#include "backends/executorch/generation/specialise.h"

namespace argosy::executorch {

void specialise(Component& component, const std::map<std::string, SymExpr>& replacements) {
  substitute_symbols(component, replacements);
  component.guards.clear();
  component.samples.clear();
  component.specialized.clear();
  std::erase_if(component.attributes, [](const auto& attribute) { return attribute.first.starts_with("pt2."); });
}

}  // namespace argosy::executorch
