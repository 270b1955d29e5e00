#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "backends/executorch/document.h"
#include "backends/onnx/writer.h"
#include "base/result.h"
#include "passes/pipeline.h"

namespace argosy {

/// Lets a test program spoil an export on its way, to see whether the check finds it (tests/sabotage). Neither the
/// library nor the program that users get ever sets one. Empty functions are not called; an error ends the export.
struct ExportHooks {
  /// The program once it has its weights (kProgramRead), and after each pass, by the pass's name.
  std::function<Status(std::string_view stage, Program&)> on_program;
  /// The graphs of an ONNX export as the engine gets them, before data is laid out.
  std::function<Status(std::vector<onnx::NamedModel>&)> on_onnx_graphs;
  /// The methods of an ExecuTorch program and their data, memory planned.
  std::function<Status(executorch::Document&)> on_executorch;
};

/// The first stage of a program.
inline constexpr std::string_view kProgramRead = "read";

/// The pipeline with calls of hooks->on_program between its passes; itself if there are no hooks.
Pipeline with_hooks(Pipeline pipeline, const ExportHooks* hooks);

}  // namespace argosy
