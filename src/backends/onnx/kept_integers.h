#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/onnx/options.h"
#include "base/error.h"
#include "base/result.h"
#include "ir/program.h"

namespace argosy::onnx {

/// Integers of a quantised checkpoint (GPTQ, AWQ, compressed-tensors) that go into MatMulNBits as they are: only bits
/// are moved, so that nothing is lost.
class KeptIntegers {
 public:
  /// In the program's table.
  struct Stored {
    std::vector<WeightId> outputs;  // integers, scales and perhaps zero points
    int bits = 0;
    int64_t block = 0;
  };

  /// Whether the checkpoint stores a weight of a linear layer so that the op takes it. One that it stores in another
  /// way is remembered for check().
  bool look_at(const Weight& weight);
  /// Adds what look_at() found to the program, once, and notes it for manifests. Level 4 rounds activations, too.
  Result<const Stored*> store(Program& program, const Weight& weight, int level);

  bool is_empty() const { return stored_.empty(); }
  /// Notes which weights were dequantised instead. It is an error if nothing is kept and nothing else is asked for.
  Status check(const Quantization& how, Diagnostics& diagnostics) const;

 private:
  std::map<std::string, Stored> stored_;  // by recipe
  std::set<std::string> dequantized_;     // names
};

}  // namespace argosy::onnx
