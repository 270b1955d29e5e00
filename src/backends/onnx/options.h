#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/onnx/runtime_ops.h"
#include "tensor/quantize.h"
#include "tensor/row_quantizer.h"

namespace argosy::onnx {

inline constexpr int kMinOpset = 18, kMaxOpset = 24, kDefaultOpset = 22;
/// The first with RMSNormalization and RotaryEmbedding.
inline constexpr int kOpsetOfNorms = 23;

enum class Optimize : uint8_t {
  kOff,
  kSafe,    // constants are folded, equal nodes merged; ONNX's own ops only
  kEngine,  // also what the engine has beyond ONNX
};

/// In place of a number of bits: NF4. Four bits name one of 16 floats, which is multiplied with the largest magnitude
/// of a block. Of linear layers alone.
inline constexpr int kNf4 = -4;

/// In place of a number of bits: as Quantization::own says.
inline constexpr int kOwnScheme = -5;

/// Of a rule for rows of weights that are looked up.
inline constexpr std::string_view kEmbeddingRule = "embedding";

/// Bits for weights of some modules. `where` is a module's path or part of it ("lm_head", "mlp.down_proj"), or
/// kEmbeddingRule.
struct QuantizeRule {
  std::string where;
  int bits = 0;  // 4, 8, kNf4 or kOwnScheme; 0: as it is
};

/// An accuracy level: the one that is fast on the device.
inline constexpr int kDevicesAccuracy = -1;

/// How weights are stored in few bits: for MatMulNBits, MatMulBnb4 and GatherBlockQuantized of ONNX Runtime, or for
/// MatMulInteger.
struct Quantization {
  int bits = 0;  // of linear layers: 4, 8, kNf4 or kOwnScheme; 0: as they are
  /// A scale for each row of 8 bits, signed if symmetric; activations are rounded to 8 bits at run time, a scale for
  /// each tensor. Products are MatMulInteger; blocks, method and accuracy level mean nothing then.
  bool is_dynamic = false;
  std::vector<QuantizeRule> rules;  // exceptions; of several that fit the last one counts
  bool keeps = false;               // integers that the checkpoint has, where kernels take them
  int64_t block = 0;                // values that share a scale; 0: what is usual of `bits`
  QuantizeMethod method = QuantizeMethod::kLargest;
  bool is_symmetric = true;
  /// Of kOwnScheme: the name of a scheme that a user's package has, and the scheme, once it is found.
  std::string own_name;
  std::shared_ptr<const RowQuantizer> own;
  int accuracy_level = kDevicesAccuracy;  // of MatMulNBits: 0 unset, 1 f32, 4 activations in 8 bits as well
  int half_accuracy_level = 0;            // the same, where activations are f16

  bool is_wanted() const { return bits != 0 || keeps || !rules.empty(); }
};

enum class HalfMode : uint8_t {
  kNone,
  kMixed,     // products, and what lies between them, compute in f16; the rest, inputs and outputs are f32
  kObserved,  // all is f32, and further outputs tell how large values are that kMixed has in f16
};

/// The largest magnitudes that values of f32 graphs had, by the graph's component and the value's name.
using SeenValues = std::map<std::string, std::map<std::string, double>>;

struct LoweringOptions {
  int opset = kDefaultOpset;
  Optimize optimize = Optimize::kEngine;
  /// Ops of ONNX Runtime's own (com.microsoft) that may be used, where they are faster.
  RuntimeOps runtime_ops = {};
  /// Shorter rows of a batch are filled up at their end, and caches may leave the filling out.
  bool pads_at_end = false;
  /// Tokens that a text has at most, the engine counting their positions from 0; 0: nobody knows.
  int64_t longest_text = 0;
  /// Weights may be joined to new ones, which no file of the checkpoint has.
  bool joins_weights = false;
  /// GroupQueryAttention takes queries, keys and values as one tensor, too.
  bool packs_attention = false;
  Quantization quantization;
  HalfMode half = HalfMode::kNone;              // of f32 graphs
  std::shared_ptr<const SeenValues> seen = {};  // of kMixed; null: nobody has looked
};

/// Where weights that are not small go.
enum class WeightsMode : uint8_t {
  kCopy,   // into one data file beside the models
  kLink,   // unchanged data of a checkpoint's file stays there, linked into the bundle; the rest as kCopy
  kEmbed,  // into the models
};

}  // namespace argosy::onnx
