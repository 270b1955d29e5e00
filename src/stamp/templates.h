#pragma once

#include <map>
#include <vector>

#include "stamp/layers.h"
#include "stamp/references.h"

namespace argosy::stamp {

/// A node of a layer in words that fit any layer of its kind.
struct Row {
  const Node* node = nullptr;                    // one of those that it stands for
  std::vector<std::vector<Reference>> mentions;  // ways to say each that hold in all layers seen
  std::vector<std::vector<Reference>> roots;     // by result; empty: no storage is known
  std::string module;                            // of its location, without the layer's own prefix
  bool in_layer = false;                         // whether there was such a prefix
  bool calls_count = false;                      // each layer calls the module once more
  bool is_shared = false;                        // several layers had it
};

/// Which layers share rows: those of a kind, but for the first of a stack.
struct RowsKey {
  uint32_t stack = kNone;
  uint32_t kind = 0;
  bool is_first = false;
  friend auto operator<=>(const RowsKey&, const RowsKey&) = default;
};

/// Fails with kUnsupportedFeature where two layers of a kind differ.
Result<std::map<RowsKey, std::vector<Row>>> learn(const Graph& graph, const Layers& layers,
                                                  const std::vector<Stack>& stacks);

/// Nodes outside layers, and how each refers to values.
std::vector<Row> describe(const Graph& graph, const Layers& layers, const std::vector<Stack>& stacks, Home home);

std::vector<uint32_t> depths_of(const std::vector<Stack>& stacks);

}  // namespace argosy::stamp
