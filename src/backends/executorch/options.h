#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "backends/executorch/activation_ranges.h"
#include "backends/executorch/generation/task.h"

namespace argosy::executorch {

/// What computes: ExecuTorch's own kernels, or XNNPACK wherever it can.
enum class Recipe : uint8_t { kPortable, kXnnpack };

/// How weights of linear layers are stored and computed with. The names are those of optimum-executorch:
/// activations (8da: 8 bits, chosen at run time for each token; 8a: 8 bits, chosen from ranges that were seen), then
/// weights.
enum class LinearEncoding : uint8_t { kFloat, k8da4w, k8da8w, k4w, k8w, k8a8w };
enum class ConvolutionEncoding : uint8_t { kFloat, k8a8w };
enum class EmbeddingEncoding : uint8_t { kFloat, k8w, k4w };

struct LinearQuantization {
  LinearEncoding encoding = LinearEncoding::kFloat;
  int64_t group_size = -1;  // values that share a scale; 0: all of a row; negative: 32 of 8da4w, else all of a row
};

struct EmbeddingQuantization {
  EmbeddingEncoding encoding = EmbeddingEncoding::kFloat;
  int64_t group_size = 0;  // 0: all of a row
};

struct LoweringOptions {
  Recipe recipe = Recipe::kXnnpack;
  std::optional<TaskPlan> task;  // absent: components become methods as they are
  /// The largest size of each dim that callers may vary, by the name that users see ("sequence"). Every such dim of a
  /// program needs one, here or by the capture's own range.
  std::map<std::string, int64_t> largest;
  /// Dims that have one size only, by the same names.
  std::map<std::string, int64_t> fixed;
  LinearQuantization linear;          // of all components but encoders
  LinearQuantization encoder_linear;  // of encoders
  EmbeddingQuantization embedding;
  ConvolutionEncoding convolution = ConvolutionEncoding::kFloat;
  ActivationRanges ranges;  // of 8a8w

  bool needs_ranges() const {
    return linear.encoding == LinearEncoding::k8a8w || encoder_linear.encoding == LinearEncoding::k8a8w ||
           convolution == ConvolutionEncoding::k8a8w;
  }
};

}  // namespace argosy::executorch
