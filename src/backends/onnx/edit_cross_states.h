#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backends/onnx/document.h"
#include "base/result.h"

namespace argosy::onnx {

/// A state of a decoder that depends on the encoder's result only.
struct CrossState {
  std::string computed;  // output of the encoder's model: "cross.0.key"
  std::string input;     // of the decoder: "past_key_values.0.encoder.key"
  std::string output;    // that the decoder is to have: "present.0.encoder.key"
};

/// Lets a decoder compute its cross states itself, from its input `hidden_input`, when the ones that it is given are
/// empty, and give them back. The computation is taken from the encoder's model: what lies between its output
/// `hidden_output` and the states. It must need nothing else than weights and sizes that the hidden states have too.
/// The dim along which states are empty is `dim`; it is of any size for callers.
Status compute_cross_states(Model& decoder, const Model& encoder, std::string_view hidden_output,
                            std::string_view hidden_input, std::span<const CrossState> states, int dim = 2);

}  // namespace argosy::onnx
