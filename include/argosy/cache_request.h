#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace argosy {
inline namespace v1 {

/// What graphs are for; another dtype may suit it.
enum class ExportFormat : uint8_t { kOnnx, kExecutorch, kPt2 };

/// Which graphs of a model are wanted, as the command has it.
struct CacheRequest {
  std::filesystem::path model;  // the folder with config.json and the checkpoint
  std::filesystem::path cache;  // $ARGOSY_CACHE of the command, or what `argosy doctor` names
  ExportFormat format = ExportFormat::kOnnx;
  std::string task;            // empty: what the model's class is for; not that of ExecutorchExportOptions
  std::string shape;           // of ONNX and .pt2: narrows dims, "batch=1,sequence=1..2048"
  std::string dtype = "auto";  // as --dtype: float32 and the like, or of ONNX a variant such as "q4"
  bool prefill = false;        // also a graph for prompts
  bool trust_remote_code = false;
};

}  // namespace v1
}  // namespace argosy
