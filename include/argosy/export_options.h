#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "argosy/extension.h"

namespace argosy {

/// Where weights go (docs/how-to/export-onnx.md).
enum class WeightPlacement : uint8_t { kCopy, kLink, kEmbed };

/// What a folder is for: which names its graphs have, and which files are beside them.
enum class Engine : uint8_t { kPlain, kGenai, kTransformersJs, kOptimum };

struct OnnxExportOptions {
  /// NAME.onnx: one model, with its weights beside it; anything else: a folder with a model for each component.
  std::filesystem::path output;
  /// How weights come from the checkpoint (docs/weight-plan-format.md). Empty: by their names, which does for
  /// checkpoints that call them as the model does; tied ones may be there once.
  std::filesystem::path weight_plan;
  Engine engine = Engine::kPlain;  // of a folder
  std::string device = "cpu";      // or webgpu, cuda, dml: which of its own ops the engine has there
  int opset = 22;
  bool optimize = true;
  WeightPlacement weights = WeightPlacement::kCopy;
  std::vector<OpRule> rules;  // for ops that are no PyTorch's
  int threads = 1;
  size_t scratch_bytes = size_t{64} << 20;  // for weights on their way, all threads together
  /// Told now and then, by the calling thread, how much of what is to be written is. May be empty.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

/// What an export wrote.
struct ExportedBundle {
  std::filesystem::path path;
  std::vector<std::string> files;     // names, beside or in `path`
  uint64_t bytes = 0;                 // written; linked files take none
  std::vector<std::string> warnings;  // what is right and still worth a word
};

}  // namespace argosy
