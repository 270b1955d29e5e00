#pragma once

#include "passes/pass.h"

namespace argosy {

/// "decompose-complex": a complex tensor becomes one of real numbers with a last dim of 2, the real and the imaginary
/// part. Runs after normalise, whose ops it knows. Refused, with their place: inputs, weights and results that are
/// complex, and complex arithmetic that is not here. Linear time.
Pass decompose_complex();

}  // namespace argosy
