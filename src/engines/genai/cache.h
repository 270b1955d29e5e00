#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines::genai {

/// What the engine must know of a decoder's cache, and the edits that it needs.
struct Cache {
  int64_t key_value_heads = 0, head_size = 0;  // of the first layer with keys; the graph has those of the others
  std::vector<int64_t> key_value_layers;       // numbers of layers with keys and values
  std::vector<int64_t> conv_layers;            // numbers of layers with one convolution state and nothing else
  int64_t conv_width = 0;                      // of the first of those
  std::vector<int64_t> recurrent_layers;       // numbers of layers with a convolution and a recurrent state
  std::vector<Edit> edits;
};

/// The engine keeps keys and values [batch, heads, past, size], of one size in a layer; in layers of linear attention
/// (Mamba and the like) a convolution and a recurrent state of fixed sizes, the same in all layers; and for LFM2's kind
/// of models one convolution state [batch, channels, width] in each layer without keys. Anything else is an error with
/// the reason.
Result<Cache> read_cache(const ComponentInterface& decoder);

}  // namespace argosy::engines::genai
