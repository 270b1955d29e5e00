#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace argosy {
inline namespace v1 {

/// What `argosy inspect --json` says of a file (.pt2, .capture, .safetensors, .onnx, .pte), of a checkpoint's folder,
/// or of the graphs of a folder that an export wrote: JSON on one line. Members are only ever added. Weights are not
/// read. `schemas` is needed for .pt2 archives alone: a file that `python -m argosy.schemas` wrote.
Result<std::string> inspect_file(const std::filesystem::path& path, const std::filesystem::path& schemas = {});

}  // namespace v1
}  // namespace argosy
