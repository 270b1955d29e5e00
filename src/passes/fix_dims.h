#pragma once

#include "passes/pass.h"

namespace argosy {

/// Replaces every symbol whose range has one number by that number: a dim that users fixed has its size in the types of
/// inputs and results, and nothing computes it. Sample inputs of another size are dropped.
Pass fix_dims();

}  // namespace argosy
