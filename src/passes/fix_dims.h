#pragma once

#include "passes/pass.h"

namespace argosy {

/// A symbol whose range has one number is that number everywhere: a dim that users fixed has its size in the types of
/// inputs and results, and nothing computes it. Sample inputs of another size go.
Pass fix_dims();

}  // namespace argosy
