#pragma once

#include <map>
#include <string>

#include "ir/program.h"
#include "passes/rewrite_rules.h"

namespace argosy {

/// Adds a weight that no checkpoint has, made from others while they are written, to the program's table.
WeightId add_weight(Program& program, std::string name, TensorSourcePtr source);

/// The values of such weights in one graph; each is added when it is first asked for.
class AddedWeights {
 public:
  ValueId value(const RuleContext& context, WeightId id);

 private:
  std::map<WeightId, ValueId> values_;
};

}  // namespace argosy
