#pragma once

#include <memory>
#include <span>

#include "argosy/extension.h"
#include "passes/pipeline.h"
#include "passes/rewrite_rules.h"

namespace argosy {

/// Rules of a program that links the library, as a table that passes apply. Null if there are none.
Result<std::shared_ptr<const RuleTable>> user_rules(std::span<const OpRule> rules);

/// The passes of a backend, after those rules.
Pipeline after_rules(const std::shared_ptr<const RuleTable>& rules, Pipeline pipeline);

}  // namespace argosy
