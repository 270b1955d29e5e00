#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "passes/quantized_weights.h"

namespace argosy::executorch {

/// The least and the most value that went into a layer, and that came out of it.
struct LayerRanges {
  double input_least = 0, input_most = 0, output_least = 0, output_most = 0;
};

/// By the name of the layer's weight.
using ActivationRanges = std::map<std::string, LayerRanges>;

/// Scales and zero points whose 256 integers cover the ranges, zero included: zero is an integer exactly.
StaticRounding rounding_of(const LayerRanges& ranges);

/// Puts them into a program, where "quantize-layers" finds them.
void note_ranges(Program& program, const ActivationRanges& ranges);
Result<ActivationRanges> noted_ranges(const Program& program);

}  // namespace argosy::executorch
