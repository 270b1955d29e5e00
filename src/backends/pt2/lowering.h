#pragma once

#include "passes/pipeline.h"

namespace argosy {

/// What a program goes through before it is written as a standalone PyTorch program: ops that a torch without other
/// packages does not have are taken apart; one that is left is an error that names it and its place in the model.
Pipeline pt2_pipeline();

/// The passes of it that others lack, by name.
std::span<const NamedPass> pt2_lowering_passes();

}  // namespace argosy
