#pragma once

#include "passes/pass.h"

namespace argosy {

/// verify() as a pass: fails with the first problem and puts all of them into the diagnostics.
Pass verify_program();

}  // namespace argosy
