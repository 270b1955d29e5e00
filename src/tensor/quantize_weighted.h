#pragma once

#include <span>

#include "tensor/quantize.h"

namespace argosy {

/// QuantizeMethod::kWeighted of a block of a multiple of 8 values, at most 256. Internal to this layer.
BlockScale quantize_weighted(std::span<const float> in, int bits, std::span<uint8_t> out);

}  // namespace argosy
