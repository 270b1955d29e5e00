#pragma once

#include <filesystem>

#include "backends/executorch/activation_ranges.h"
#include "base/result.h"

namespace argosy {

/// Reads what `python -m argosy.check.ranges` wrote: between which values activations of the model's layers were.
Result<executorch::ActivationRanges> read_seen_ranges(const std::filesystem::path& path);

}  // namespace argosy
