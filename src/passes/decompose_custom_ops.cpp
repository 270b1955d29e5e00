#include "passes/decompose_custom_ops.h"

#include <array>

#include "passes/decomposition_families.h"

namespace argosy {

Pass decompose_attention() {
  std::array families = {attention_decompositions()};
  return apply_rules("decompose-attention", std::make_shared<RuleTable>(families));
}

Pass decompose_custom_ops() {
  std::array families = {attention_decompositions(), expert_decompositions()};
  return apply_rules("decompose-custom-ops", std::make_shared<RuleTable>(families));
}

}  // namespace argosy
