#pragma once

#include <string>
#include <vector>

#include "backends/executorch/options.h"
#include "passes/pass.h"

namespace argosy::executorch {

/// A linear layer whose weight is stored as integers. `weight` [out, in] and `scales` [out, groups] are weights;
/// `encoding` is LinearEncoding's name ("8da4w"). Only XNNPACK computes it.
inline constexpr std::string_view kQuantizedLinear =
    "argosy::quantized_linear(Tensor input, Tensor weight, Tensor scales, Tensor? bias, str encoding, int group_size) "
    "-> Tensor";

/// "8da4w" and the like, as commands call them.
std::string_view name_of(LinearEncoding encoding);

/// Whether `encoder_linear` is for its layers.
bool is_encoder(const Component& component);
const LinearQuantization& linear_of(const LoweringOptions& options, const Component& component);

/// "quantize-weights": stores weights of linear layers and embeddings as integers, as the options say. A weight that
/// both use gets an encoding for each. Layers whose rows cannot be cut into groups of the given size stay as they are,
/// and a note counts them; if these are all layers, or there are no layers, it is an error.
Pass quantize_weights(const LoweringOptions& options);

/// Checks options before there is a program: encodings that the recipe's kernels compute, and group sizes.
Status check_quantization(const LoweringOptions& options);

}  // namespace argosy::executorch
