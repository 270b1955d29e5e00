#include "passes/normalise.h"

#include <array>

#include "passes/eliminate_dead_code.h"
#include "passes/normalise_families.h"

namespace argosy {

Pass normalise() {
  const std::array families = {
      no_op_rules(),          shape_rules(),      joining_rules(),     creation_rules(),  elementwise_rules(),
      elementwise_synonyms(), composite_rules(),  diagonal_rules(),    random_rules(),    arrangement_rules(),
      arrangement_synonyms(), indexing_rules(),   indexing_synonyms(), resize_rules(),    wrapper_rules(),
      product_rules(),        product_synonyms(), number_rules(),      reduction_rules(),
  };
  Pass rules = apply_rules("normalise", std::make_shared<const RuleTable>(families));
  return {rules.name, [rules](Program& program, PassContext& context) -> Result<bool> {
            ARGOSY_TRY(bool has_changed, rules.run(program, context));
            for (Component& component : program.components) {
              if (has_changed && component.graphs.size() > 1) drop_unreachable_graphs(component);
            }
            return has_changed;
          }};
}

}  // namespace argosy
