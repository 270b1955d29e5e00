#include "passes/normalise.h"

#include <array>

#include "passes/normalise_families.h"

namespace argosy {

Pass normalise() {
  const std::array families = {
      no_op_rules(),          shape_rules(),     joining_rules(),     creation_rules(), elementwise_rules(),
      elementwise_synonyms(), composite_rules(), diagonal_rules(),    random_rules(),   arrangement_rules(),
      arrangement_synonyms(), indexing_rules(),  indexing_synonyms(), resize_rules(),   product_rules(),
      product_synonyms(),     number_rules(),    reduction_rules(),
  };
  return apply_rules("normalise", std::make_shared<const RuleTable>(families));
}

}  // namespace argosy
