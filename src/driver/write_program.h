#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "driver/backend_options.h"
#include "driver/progress.h"
#include "driver/read_input.h"

namespace argosy {

/// Fails if no writer fits the name: before the work is done, not after it.
Status check_output(const std::filesystem::path& path);

/// Writes a program by the file's extension: .ir (text, without the bytes of weights), .pt2, .onnx (of a program
/// with one component: lowered, weights embedded, those without bytes as inputs), or .pte (lowered). An older file is
/// replaced; it appears when it is complete. `diagnostics` gets every problem where there are several.
Status write_program(const std::filesystem::path& path, const InputProgram& input, const ProgressHook& progress,
                     const BackendOptions& backends, Diagnostics& diagnostics);

}  // namespace argosy
