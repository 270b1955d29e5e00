#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stamp/graph.h"

namespace argosy::stamp {

/// A list of modules whose length is the depth that changes.
struct Stack {
  std::string prefix;            // "model.layers"
  std::vector<uint32_t> kinds;   // of the layers of the graph at hand; equal ones are of one kind
  std::vector<uint32_t> wanted;  // of those of the graph to be made
};

/// A path through a list that runs along a stack: "past_key_values.3.key" is layer 3, "key".
struct LayerPath {
  std::string list;
  uint32_t stack = kNone;
  uint32_t layer = 0;
  std::string rest;
};

/// Which nodes, inputs and outputs belong to which layer.
class Layers {
 public:
  /// Gives every node of the graph its home. Refuses graphs in which the layers of a stack do not run one after the
  /// other, once each.
  static Result<Layers> find(Graph& graph, const std::vector<Stack>& stacks);

  std::optional<LayerPath> split(std::string_view path) const;
  const std::vector<uint32_t>& block(Home home) const;
  uint32_t position(uint32_t node) const { return positions_[node]; }
  /// Lists by name, with the stack that each runs along.
  const std::map<std::string, uint32_t, std::less<>>& lists() const { return lists_; }

  /// The same lists for another graph, whose nodes have their homes already.
  static Layers along(const Layers& other, const Graph& graph);

 private:
  void place_nodes(const Graph& graph);

  std::map<std::string, uint32_t, std::less<>> lists_;
  std::map<Home, std::vector<uint32_t>> blocks_;
  std::vector<uint32_t> positions_;  // of a node in its block
};

/// "prefix.3.rest" as a path of a list; nothing if no number follows the prefix.
std::optional<LayerPath> split_at(std::string_view path, std::string_view prefix);

}  // namespace argosy::stamp
