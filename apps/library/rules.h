#pragma once

#include "argosy/extension.h"
#include "c_interface.h"

namespace argosy {

/// Ends an export whose rule threw an exception. That is kept on the other side.
struct RuleThrew {};

/// A rule of a program on the other side of the C functions.
OpRule rule_of_program(const ArgosyRule& rule);

}  // namespace argosy
