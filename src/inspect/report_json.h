#pragma once

#include <string>

#include "inspect/inspect.h"
#include "inspect/inspect_pte.h"

namespace argosy {

// Everything, as one compact JSON object on one line. Members are only ever added.
std::string checkpoint_json(const std::string& path, const CheckpointReport& report);
std::string onnx_json(const std::string& path, const OnnxReport& report);
std::string pte_json(const std::string& path, const PteReport& report);
std::string program_json(const std::string& path, InputKind kind, const ProgramReport& report);

}  // namespace argosy
