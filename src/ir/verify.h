#pragma once

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// Checks the whole program, once, at the border; afterwards passes and backends trust it. Structure: ids live, names
/// unique, topological order, use lists, signature and weights consistent, sub-graphs reachable from one node each and
/// called with operands that fit. Meaning: each node against its op's schema (number and kind of arguments and
/// results). Collects every problem, up to `max_errors`, each with node and model location. Linear in nodes.
Diagnostics verify(const Program& program, size_t max_errors = 100);

/// The first error of verify(), or success.
Status verify_first(const Program& program);

}  // namespace argosy
