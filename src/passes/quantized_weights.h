#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace argosy {

/// How a layer's activations are rounded to signed 8 bits, if that is fixed when the file is written:
/// integer = value / scale + zero.
struct StaticRounding {
  float input_scale = 1, output_scale = 1;
  int32_t input_zero = 0, output_zero = 0;
};

/// A weight that is stored in fewer bits than the checkpoint has it.
struct QuantizedWeight {
  std::string weight;    // its name in the model
  std::string use;       // "linear", "product" (its columns are the output), "convolution", "embedding", "experts" (a
                         // matrix for each) or "turned-experts": one weight may have several
  std::string encoding;  // "8da4w"
  int64_t group = 0;     // values that share a scale; 0: all of a row
  std::optional<StaticRounding> rounding;  // of its activations
};

/// Notes that a pass stored a weight so, under the names of the weights that it was made from.
void note_quantized(Program& program, const QuantizedWeight& weight);
/// What was noted, in order, every one once.
std::vector<QuantizedWeight> quantized_weights(const Program& program);

/// Notes that a weight which no checkpoint has holds the rows of these.
void note_joined(Program& program, std::string_view joined, const std::vector<std::string>& weights);
/// The weights that one was joined from; itself, if it was not.
std::vector<std::string> parts_of(const Program& program, const std::string& name);

}  // namespace argosy
