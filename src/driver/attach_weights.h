#pragma once

#include <filesystem>

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// Gives a program the weights of a checkpoint, by the plan in a file or, if that path is empty, by their names.
/// `diagnostics` gets remarks that are no errors.
Status attach_weights(Program& program, const std::filesystem::path& checkpoint, const std::filesystem::path& plan,
                      Diagnostics& diagnostics);

}  // namespace argosy
