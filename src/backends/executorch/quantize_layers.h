#pragma once

#include <string_view>

#include "backends/executorch/options.h"
#include "passes/pass.h"

namespace argosy::executorch {

// Layers of integers: the input is rounded, products of integers are summed, and the sum is rounded to the output's
// scale. `weight` is int8 with a scale for each row of its first dim; `bias` int32, whose scales are the products of
// the input's and the weight's. Only XNNPACK computes them.
inline constexpr std::string_view kStaticLinear =
    "argosy::static_linear(Tensor input, Tensor weight, Tensor scales, Tensor? bias, Tensor? bias_scales, float "
    "input_scale, int input_zero, float output_scale, int output_zero) -> Tensor";
inline constexpr std::string_view kStaticConvolution =
    "argosy::static_convolution(Tensor input, Tensor weight, Tensor scales, Tensor? bias, Tensor? bias_scales, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups, float input_scale, int input_zero, float "
    "output_scale, int output_zero) -> Tensor";

/// "quantize-layers": linear layers and convolutions of which the options say 8a8w become layers of integers, by the
/// ranges that are noted in the program (activation_ranges.h). Those that XNNPACK does not take, or whose activations
/// were not seen, stay as they are, and a note counts them; if these are all, it is an error.
Pass quantize_layers(const LoweringOptions& options);

}  // namespace argosy::executorch
