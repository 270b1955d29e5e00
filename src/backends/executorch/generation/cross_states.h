#pragma once

#include <string>

#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Makes a decoder compute its cross states itself: inputs that the capture's wiring fills with results of `encoder`
/// other than its hidden states are removed, and the nodes that compute them are copied, fed by the decoder's input for
/// hidden states. A result that also depends on other inputs of the encoder is an error.
Status compute_cross_states(Program& program, const Component& encoder, Component& decoder);

/// The name of the output of `from` that the capture's wiring connects to that input of `to`; "" if there is none.
/// Inputs have the names of the graphs.
Result<std::string> wired_output(const Program& program, const std::string& from, const std::string& to,
                                 const std::string& input);

}  // namespace argosy::executorch
