#pragma once

#include <string>

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// The component's samples as torch.save would write `((), {"input_ids": …})`, which torch.export.load hands out as
/// example inputs. Empty if the component has none, or none of a dtype that is written.
Result<std::string> torch_sample_inputs(const Component& component);

}  // namespace argosy
