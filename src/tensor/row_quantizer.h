#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace argosy {

/// Whole rows of a weight, one after the other, and what becomes of them.
struct RowsToQuantize {
  int64_t rows = 0, blocks = 0, block = 0;  // blocks of a row, values of a block
  std::span<const float> values;            // finite; a row that ends within a block is filled up with zeros
  std::span<uint8_t> integers;              // one for each value
  std::span<float> scales;                  // one for each block
  std::span<uint8_t> zero_points;           // likewise; empty if the quantizer has none
};

/// A quantisation scheme whose arithmetic is not in this library: a weight is (integer - zero point) * scale. What it
/// gives is checked by those who call it.
class RowQuantizer {
 public:
  virtual ~RowQuantizer() = default;

  /// What recipes and messages call it: "clipped4 of argosy-sample 0.1.0". Quantizers of one name do the same.
  virtual std::string name() const = 0;
  virtual int bits() const = 0;  // 4 or 8
  /// Without them the zero point is 2^(bits-1).
  virtual bool has_zero_points() const = 0;
  /// From any thread. What becomes of a row depends on that row alone: they come in batches of any size.
  virtual Status quantize(const RowsToQuantize& rows) const = 0;
};

}  // namespace argosy
