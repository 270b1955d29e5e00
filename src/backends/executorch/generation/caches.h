#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/executorch/generation/decoder_call.h"

namespace argosy::executorch {

/// A tensor that a component is given and gives back changed, as the attribute capture.cache has it.
struct CacheState {
  std::string input, output;  // names of an input and of an output of the component
};
/// Those that change. None if the component has no cache. An attribute that is not understood is an error.
Result<std::vector<CacheState>> read_cache_states(const Component& component);

/// The keys or values of a layer, kept by the program.
struct CachedKeys {
  ValueId cache;                // after the keys or values of the call have been written
  bool has_heads_last = false;  // [1, largest, heads, size]; else [1, heads, largest, size]
};

/// Makes all states of a decoder buffers of the program. States that grow with the tokens have room for `largest`
/// tokens, and are written at the positions of the call; others are written as a whole, and are zero for a call that
/// begins at position 0. Their inputs and outputs are removed. A state that grows otherwise than by adding the call's
/// tokens at its end is an error.
/// Returns where keys or values are kept, by index of the value that reads all `total` of a layer.
Result<std::map<uint32_t, CachedKeys>> keep_states(DecoderCall& call, const std::vector<CacheState>& states,
                                                   bool use_custom_op);

/// Keeps a number for each token, as states that grow are kept. `added` [1, sequence] are those of the call; returns
/// those of all tokens, [1, total].
Result<ValueId> keep_row(DecoderCall& call, const std::string& name, ValueId added);

}  // namespace argosy::executorch
