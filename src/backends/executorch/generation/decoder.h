#pragma once

#include <map>
#include <string>

#include "backends/executorch/generation/task.h"
#include "backends/executorch/generation/token_types.h"
#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Makes the component a method of a decoder, as bind_task() says. Cross states of a model with an encoder are no
/// longer inputs (see cross_states.h).
/// An input that runners do not pass is bound to a constant only where that is what the model computes without it:
/// masks are one, since no token is padding; types of tokens are zero in a text without media. Else it is an error.
Status bind_decoder(Program& program, Component& component, const TaskOptions& options, const MediaTokens& media);

}  // namespace argosy::executorch
