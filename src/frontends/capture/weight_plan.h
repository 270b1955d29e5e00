#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/checkpoint.h"
#include "tensor/dtype.h"
#include "tensor/source.h"

namespace argosy {

/// The newest format version; it and those before it are read (docs/weight-plan-format.md).
inline constexpr int64_t kWeightPlanVersion = 3;

/// What names of weights begin with that are no model's but an adapter's, kept apart:
/// "adapter:NAME:model.layers.0.self_attn.q_proj.lora_A.weight". So do those of all adapters' tensors.
inline constexpr std::string_view kAdapterWeights = "adapter:";

enum class PlanOp : uint8_t {
  kStack,
  kConcat,
  kSlice,
  kTranspose,
  kReshape,
  kCast,
  kBitcast,
  kGather,
  kDequantize,
  kAddProduct,
  kAffine
};

/// One step of a recipe. Inputs are numbers of values: sources come first, then the results of earlier steps.
struct PlanStep {
  PlanOp op = PlanOp::kCast;
  std::vector<uint32_t> inputs;
  int dim = 0;                    // stack, concat, slice
  int64_t start = 0, length = 0;  // slice
  std::vector<int64_t> shape;     // reshape
  std::vector<int> order;         // transpose
  DType dtype = DType::kF32;      // cast, bitcast, dequantize, affine
  std::vector<int64_t> block;     // dequantize
  int64_t zero = 0, modulus = 0;  // dequantize
  double scale = 1;               // add_product, affine
  double offset = 0;              // affine
};

/// Where a weight comes from.
enum class PlanOrigin : uint8_t {
  kSources,  // steps on tensors of the checkpoint; without steps there is one, taken as it is
  kTied,     // the same bytes as another weight
  kFill,     // every element has the same bytes
  kBytes,    // bytes that the plan holds
};

struct PlannedWeight {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  PlanOrigin origin = PlanOrigin::kSources;
  std::vector<std::string> sources;
  std::vector<PlanStep> steps;
  std::string tied_to;           // a weight of this plan that is not tied itself
  std::vector<std::byte> bytes;  // of one element (kFill) or of all (kBytes)
};

/// How each weight of a model comes from the tensors of a checkpoint: what transformers' loading rules say, resolved to
/// plain steps. Immutable after reading.
class WeightPlan {
 public:
  /// Checks everything that can be checked without the checkpoint. `name` is for messages.
  static Result<WeightPlan> parse(std::string text, std::string_view name);
  static Result<WeightPlan> read(const std::filesystem::path& path);

  /// Sorted by name.
  std::span<const PlannedWeight> weights() const { return weights_; }
  const PlannedWeight* find(std::string_view name) const;
  /// Names of the model's state dict that the checkpoint does not bring, and keys of the checkpoint that nothing takes.
  const std::vector<std::string>& missing() const { return missing_; }
  const std::vector<std::string>& unexpected() const { return unexpected_; }
  /// What users want to know of how weights are stored and read, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::string& model_class() const { return model_class_; }
  /// headers_hash() of the checkpoints that it is for.
  const std::string& checkpoint_hash() const { return checkpoint_hash_; }

  /// The recipe of each weight over this checkpoint, in the order of weights(). Shapes and dtypes are checked against
  /// the checkpoint's headers step by step; nothing is read.
  Result<std::vector<TensorSourcePtr>> sources(const Checkpoint& checkpoint) const;
  /// The same over tensors that come from anywhere, whatever checkpoint the plan was made for.
  using Lookup = std::function<Result<TensorSourcePtr>(const std::string& name)>;
  Result<std::vector<TensorSourcePtr>> sources(const Lookup& lookup) const;

 private:
  friend class WeightPlanReader;
  std::vector<PlannedWeight> weights_;
  std::vector<std::string> missing_, unexpected_, notes_;
  std::string model_class_, checkpoint_hash_;
};

/// SHA-256 (hex) of names, dtypes and shapes of a checkpoint's tensors, and of the bytes of those that hold settings
/// (bitsandbytes' quant_state): checkpoints of equal hash share their plans.
std::string headers_hash(const Checkpoint& checkpoint);

}  // namespace argosy
