#pragma once

#include <filesystem>
#include <memory>

#include "backends/onnx/options.h"
#include "base/result.h"

namespace argosy {

/// Reads what `python -m argosy.check.seen` wrote: how large values of float32 graphs became.
Result<std::shared_ptr<const onnx::SeenValues>> read_seen_values(const std::filesystem::path& path);

}  // namespace argosy
