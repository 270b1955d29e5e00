#pragma once

#include <cstddef>
#include <filesystem>

#include "base/result.h"
#include "driver/progress.h"
#include "frontends/capture/weight_plan.h"
#include "io/checkpoint.h"

namespace argosy {

struct WriteWeightsOptions {
  size_t scratch_bytes = size_t{64} << 20;
  ProgressHook progress;
};

/// Writes the weights that a plan makes of a checkpoint as one safetensors file, under the model's own names, tied ones
/// under each of theirs. Streams: memory is bounded by `scratch_bytes`, whatever the size. An older file is replaced;
/// it appears when it is complete. Weights that the plan lists as missing are an error that names them.
Status write_weights(const std::filesystem::path& path, const WeightPlan& plan, const Checkpoint& checkpoint,
                     const WriteWeightsOptions& options);

}  // namespace argosy
