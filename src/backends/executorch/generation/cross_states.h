#pragma once

#include <string>

#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Lets a decoder compute what it attends to of the encoder's result by itself: inputs that the capture's wiring fills
/// with results of `encoder` other than its hidden states go, and the nodes that compute them come along, fed by the
/// decoder's input for hidden states. What depends on other inputs of the encoder too is an error.
Status compute_cross_states(Program& program, const Component& encoder, Component& decoder);

/// The name of the output of `from` that the capture's wiring leads to that input of `to`; "" if there is none. Inputs
/// are named as graphs name them.
Result<std::string> wired_output(const Program& program, const std::string& from, const std::string& to,
                                 const std::string& input);

}  // namespace argosy::executorch
