#pragma once

#include "passes/pipeline.h"

namespace argosy {

/// The passes before a program is written as a standalone PyTorch program: ops that torch does not have without other
/// packages are decomposed; one that is left is an error that names it and its place in the model.
Pipeline pt2_pipeline();

/// Those of its passes that only this backend has, by name.
std::span<const NamedPass> pt2_lowering_passes();

}  // namespace argosy
