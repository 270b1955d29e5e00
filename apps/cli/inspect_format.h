#pragma once

#include <string>

#include "explanation.h"
#include "inspect/graph_report.h"
#include "inspect/inspect.h"
#include "inspect/inspect_pte.h"

namespace argosy::cli {

// The human layout: aligned columns, lists cut after `top` rows (0: not cut).
std::string checkpoint_text(const std::string& path, const CheckpointReport& report, size_t top);
std::string onnx_text(const std::string& path, const OnnxReport& report, size_t top);
std::string pte_text(const std::string& path, const PteReport& report, size_t top);
std::string program_text(const std::string& path, InputKind kind, const ProgramReport& report, size_t top);

// In short, a few lines: what it is made of and what was recognised in it. `report` of ONNX has its nodes.
Explanation onnx_explanation(const std::string& path, const OnnxReport& report);
Explanation pte_explanation(const std::string& path, const PteReport& report);

}  // namespace argosy::cli
