#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "backends/executorch/document.h"
#include "backends/onnx/writer.h"
#include "base/result.h"
#include "debug/watch.h"
#include "passes/pipeline.h"

namespace argosy {

/// Functions that see an export while it is made. They are for a test program that spoils exports to see whether the
/// check notices (tests/sabotage): neither the library nor the program that users get ever sets one. Empty functions
/// are not called; an error ends the export.
struct ExportHooks {
  /// Shows developers the passes of a command; may be null.
  Watch* watch = nullptr;
  /// The program once it has its weights (kProgramRead), and after each pass, by the pass's name.
  std::function<Status(std::string_view stage, Program&)> on_program;
  /// The graphs of an ONNX export as the engine gets them, before data is laid out.
  std::function<Status(std::vector<onnx::NamedModel>&)> on_onnx_graphs;
  /// The methods of an ExecuTorch program and their data, memory planned.
  std::function<Status(executorch::Document&)> on_executorch;
};

/// The first stage of a program.
inline constexpr std::string_view kProgramRead = "read";

/// Runs a backend's passes on a program, watched, with the hooks' calls between them. The program is verified before,
/// since it comes from outside, and after, since writers trust it.
Status run_export_passes(const Pipeline& pipeline, Program& program, const ExportHooks* hooks,
                         Diagnostics& diagnostics);

}  // namespace argosy
