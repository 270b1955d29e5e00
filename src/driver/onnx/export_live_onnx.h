#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "backends/onnx/document.h"
#include "backends/onnx/lowering.h"
#include "base/result.h"
#include "driver/live_tensors.h"

namespace argosy {

/// A live model's graph as an ONNX model.
struct LiveOnnxModel {
  onnx::Model model;
  std::vector<std::string> ops;    // that were left to translate, sorted, each once
  std::vector<std::string> notes;  // what callers may want to know, a line each
};

/// Reads the capture of one component, gives it its weights and lowers it. `inputs` and `outputs` are the callers'
/// names for them, in order; further outputs keep their names. All values of the result have names.
Result<LiveOnnxModel> lower_live(const std::filesystem::path& capture, std::span<const LiveTensor> weights,
                                 std::span<const std::string> inputs, std::span<const std::string> outputs,
                                 const onnx::LoweringOptions& options, Diagnostics& diagnostics);

/// How the weights of a model reach the engine that runs it.
enum class WeightExposure : uint8_t {
  kStored,             // with the model, and only there
  kStoredAndOverride,  // with the model, and callers may pass others as inputs
  kInputs,             // callers pass them
};

/// Makes the model's weights inputs, after those that it has. Constants of the translation stay as they are.
void expose_weights(onnx::Model& model, WeightExposure exposure);

/// The whole file in memory, weights included.
Result<std::string> live_model_bytes(const onnx::Model& model);

/// Writes the model, and its larger weights to a file beside it that is called as the model with ".data" added. What
/// was there before is replaced.
Status save_live_model(const onnx::Model& model, const std::filesystem::path& path, bool external_data);

}  // namespace argosy
