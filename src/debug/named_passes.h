#pragma once

#include <span>

#include "passes/pipeline.h"

namespace argosy {

/// Every pass that can be asked for by name: those that all share, then those of each backend.
std::span<const NamedPass> every_pass();

}  // namespace argosy
