#pragma once

#include "base/result.h"
#include "tensor/source.h"

namespace argosy {

/// base + scale * (left @ right), for a base [rows, columns], a left [rows, rank] and a right [rank, columns]: an
/// adapter merged into its weight. Computed in f32, each sum in the order of the rank, and rounded once to the base's
/// dtype, which is f32, f16 or bf16; the others are too, not necessarily the same.
Result<TensorSourcePtr> product_added(TensorSourcePtr base, TensorSourcePtr left, TensorSourcePtr right, float scale);

}  // namespace argosy
