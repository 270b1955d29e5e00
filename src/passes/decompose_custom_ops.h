#pragma once

#include "passes/pass.h"

namespace argosy {

/// Takes ops apart that plain PyTorch does not have: the grouped matrix product by which transformers runs experts
/// (transformers::grouped_mm_fallback) and attention as captures may hold it in one piece (argosy::attention). What
/// remains is ATen. Values are those of the custom op's own kernel.
Pass decompose_custom_ops();

/// Only attention: for backends that compute products of experts by themselves.
Pass decompose_attention();

}  // namespace argosy
