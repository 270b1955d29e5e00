#pragma once

#include <span>

#include "passes/rewrite_rules.h"

namespace argosy {

/// "recognise": sub-graphs that engines may have a fast op for become one op, for backends that ask for it. After
/// normalise. Conditions are proved from the graph; what cannot be proved is left alone.
Pass recognise();
/// "join-views": permutations of permutations become one, reshapes of reshapes too. What was recognised leaves some.
Pass join_views();

// Rules, a file for each structure in this folder.
std::span<const RewriteRule> attention_rules();
std::span<const RewriteRule> rms_norm_rules();
std::span<const RewriteRule> rotary_rules();

}  // namespace argosy
