#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/onnx/writer.h"
#include "base/result.h"
#include "border/bind_graphs.h"
#include "driver/backend_options.h"
#include "engines/device.h"
#include "ir/program.h"

namespace argosy {

/// The device that is asked for.
Result<const engines::Device*> device_of(const OnnxOptions& options);

/// Fails unless the opset is one that can be written.
Status check_opset(const OnnxOptions& options);

/// These graphs of a program that comes from anywhere as models; without any, its components in files
/// "<component>.onnx". The program is verified first, and left as the passes made it. Every op that cannot be
/// translated is in `diagnostics`.
Result<std::vector<onnx::NamedModel>> lower_to_onnx(Program& program, std::vector<BoundGraph> graphs,
                                                    const OnnxOptions& options, Diagnostics& diagnostics);

/// What computes in f16, where not all or nothing does: a line for each graph.
std::vector<std::string> half_lines(std::span<const onnx::NamedModel> graphs);

/// The file of the program's only component, weights embedded, in memory.
Result<std::string> onnx_model_bytes(Program program, const OnnxOptions& options, Diagnostics& diagnostics);

}  // namespace argosy
