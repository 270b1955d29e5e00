#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "argosy/extension.h"

namespace argosy {
inline namespace v1 {

/// Where weights go (docs/how-to/export-onnx.md).
enum class WeightPlacement : uint8_t { kCopy, kLink, kEmbed };

/// What a folder is for: which names its graphs have, and which files are beside them.
enum class Engine : uint8_t { kPlain, kGenai, kTransformersJs, kOptimum };

/// What computes in ExecuTorch: XNNPACK wherever it can, or ExecuTorch's own kernels alone.
enum class Recipe : uint8_t { kXnnpack, kPortable };

/// Told now and then, by the calling thread, how much of what is to be written is.
using ExportProgress = std::function<void(uint64_t done, uint64_t total)>;

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
  /// As --dtype of the command: a variant such as "q4" or "mixed16", or the dtype that the capture has, which is then
  /// checked. Empty: as captured.
  std::string dtype;
  std::string quantize;               // as --quantize: "int4,lm_head=int8"
  int64_t quantize_block = 0;         // weights that share a scale; 0: as is usual
  std::string quantize_method;        // "default", "rtn" or "k_quant"; empty: default
  bool quantize_zero_points = false;  // blocks of weights need not be centred at zero
  int accuracy_level = -1;            // of products with such weights: 0 to 4; -1: what is fast on the device
  /// Of mixed16: what python -m argosy.check.seen wrote. May be empty.
  std::filesystem::path seen_values;
  std::vector<OpRule> rules;  // for ops that are no PyTorch's
  int threads = 1;
  size_t scratch_bytes = size_t{64} << 20;  // for weights on their way, all threads together
  ExportProgress progress;                  // may be empty
};

struct ExecutorchExportOptions {
  /// NAME.pte: the program; anything else: a folder with model.pte and what runners want.
  std::filesystem::path output;
  std::filesystem::path weight_plan;  // as that of OnnxExportOptions
  std::string task;                   // "text-generation"; empty: components become methods as they are
  Recipe recipe = Recipe::kXnnpack;
  std::string shape;            // the largest sizes of dims: "batch=1,sequence=1..2048"
  int64_t max_seq_len = 0;      // of a task: tokens that caches hold; 0: the model's, up to 2048
  bool custom_sdpa = true;      // of a task: attention by llama::custom_sdpa
  bool custom_kv_cache = true;  // of a task: caches by llama::update_cache
  bool all_logits = false;      // of text generation: of every token, not of the last one alone
  bool dynamic_shapes = true;   // of a task; false: one token a call
  bool weights_beside = false;  // in NAME.ptd
  std::string dtype;            // that the capture has, which is then checked; empty: any
  // Encodings of weights, as the command has them under the same names: "8da4w". Empty: as the dtype has them.
  std::string qlinear, qlinear_encoder, qembedding, qconv;
  int64_t qlinear_group_size = -1, qlinear_encoder_group_size = -1;  // -1: the encoding's
  int64_t qembedding_group_size = 0;                                 // 0: all of a row
  /// Of 8a8w: what python -m argosy.check.ranges wrote.
  std::filesystem::path seen_values;
  std::vector<OpRule> rules;  // for ops that are no PyTorch's
  int threads = 1;
  size_t scratch_bytes = size_t{64} << 20;  // for weights on their way, all threads together
  ExportProgress progress;                  // may be empty
};

struct Pt2ExportOptions {
  /// NAME.pt2: one archive with all components; anything else: a folder with an archive for each.
  std::filesystem::path output;
  std::filesystem::path weight_plan;  // as that of OnnxExportOptions
  std::string dtype;                  // that the capture has, which is then checked; empty: any
  std::vector<OpRule> rules;          // for ops that are no PyTorch's
  int threads = 1;
  size_t scratch_bytes = size_t{64} << 20;  // for weights on their way, all threads together
  ExportProgress progress;                  // may be empty
};

/// What an export wrote.
struct ExportedBundle {
  std::filesystem::path path;
  std::vector<std::string> files;     // names, beside or in `path`
  uint64_t bytes = 0;                 // written; linked files take none
  std::vector<std::string> warnings;  // what is right and still worth a word
};

}  // namespace v1
}  // namespace argosy
