#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stamp/layers.h"

namespace argosy::stamp {

/// One way to say which value is meant, that can be said at any depth: "the last result of the layer before", "the
/// weight q_proj of this layer".
struct Reference {
  enum class What : uint8_t { kSize, kInput, kLayerInput, kOwn, kGlue, kOtherLayer };
  enum class Count : uint8_t { kNoLayer, kRelative, kFromStart, kFromEnd };  // how a layer is counted
  What what = What::kSize;
  Count count = Count::kNoLayer;
  bool from_back = false;  // the node is counted from the end of its layer
  uint32_t stack = kNone;
  int32_t layer = 0;
  uint32_t at = 0, result = 0;  // the node in its layer, and which of its results
  std::string text, rest;       // expression of a size, path of an input, or list and rest of the path

  friend bool operator==(const Reference&, const Reference&) = default;
};

/// All ways to refer to a value from a home, the likelier first.
std::vector<Reference> references(const Graph& graph, const Layers& layers, const std::vector<uint32_t>& depths,
                                  uint32_t value, Home from);

/// Inputs by kind-independent path.
using InputIndex = std::map<std::string, uint32_t>;

/// The value that is meant in a graph of other depths; nothing if there is none. Sizes are left to the caller.
std::optional<uint32_t> resolve(const Graph& graph, const Layers& layers, const InputIndex& inputs,
                                const std::vector<uint32_t>& depths, const Reference& reference, Home from);

}  // namespace argosy::stamp
