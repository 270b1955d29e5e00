#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "backends/executorch/document.h"
#include "driver/backend_options.h"
#include "driver/live_tensors.h"

namespace argosy {

/// A live model's graph as a program of ExecuTorch, with one method, "forward".
struct LiveExecutorchProgram {
  executorch::Document document;
  std::vector<std::string> notes;  // what callers may want to know, a line each
};

/// Reads the capture of one component, gives it its weights and lowers it.
Result<LiveExecutorchProgram> lower_live_executorch(const std::filesystem::path& capture,
                                                    std::span<const LiveTensor> weights,
                                                    const ExecutorchOptions& options, Diagnostics& diagnostics);

/// Writes a .pte file with everything inside. What was there before is replaced.
Status save_live_program(const LiveExecutorchProgram& program, const std::filesystem::path& path);

}  // namespace argosy
