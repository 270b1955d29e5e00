#pragma once

#include <string>
#include <vector>

#include "stamp/graph.h"
#include "stamp/layers.h"

namespace argosy::stamp {

/// A graph of other depth, and what its parts were made from.
struct Stamped {
  Graph graph;
  std::vector<uint32_t> inputs, outputs;  // for each: which one of the pattern's
  std::vector<std::string> modules;       // that it calls
};

/// The graph that a trace of the deeper model would give, from one of a shallower model: the layers of `pattern` are
/// what `Stack::kinds` says, those of the result what `Stack::wanted` says. All layers of a kind must be alike in
/// `pattern`; the first of a stack may be special. Fails with kUnsupportedFeature where this does not hold or a layer
/// is of a kind that the pattern does not have. What it cannot know: code that does something else beyond the depth of
/// the pattern.
Result<Stamped> stamp(const Graph& pattern, const Layers& layers, const std::vector<Stack>& stacks,
                      const std::vector<std::string>& modules);

}  // namespace argosy::stamp
