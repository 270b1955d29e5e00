#include "stamp/references.h"

#include "base/text.h"

namespace argosy::stamp {
namespace {

struct Counted {
  Reference::Count count;
  int32_t layer;
};

// Inside its stack a layer cannot know how deep the stack is. The order is that in which capture/layer_calls.py says
// where the layers of the full model read: a value of the first layer is not that of any other distance.
std::vector<Counted> counts(uint32_t stack, uint32_t layer, const std::vector<uint32_t>& depths, Home from) {
  using enum Reference::Count;
  auto signed_layer = static_cast<int32_t>(layer);
  Counted start{kFromStart, signed_layer};
  if (from.stack == stack) {
    Counted relative{kRelative, signed_layer - static_cast<int32_t>(from.layer)};
    if (layer == 0 && from.layer > 1) return {start, relative};
    return {relative, start};
  }
  Counted end{kFromEnd, static_cast<int32_t>(depths[stack]) - 1 - signed_layer};
  if (layer == 0) return {start, end};
  return {end, start};
}

std::optional<uint32_t> layer_of(const Reference& reference, const std::vector<uint32_t>& depths, Home from) {
  int64_t layer = reference.layer, depth = depths[reference.stack];
  if (reference.count == Reference::Count::kRelative) layer += from.layer;
  if (reference.count == Reference::Count::kFromEnd) layer = depth - 1 - layer;
  if (layer < 0 || layer >= depth) return std::nullopt;
  return static_cast<uint32_t>(layer);
}

}  // namespace

std::vector<Reference> references(const Graph& graph, const Layers& layers, const std::vector<uint32_t>& depths,
                                  uint32_t value, Home from) {
  using What = Reference::What;
  const Value& meant = graph.values[value];
  if (!meant.size.empty()) return {{.what = What::kSize, .text = meant.size}};
  std::vector<Reference> found;
  if (meant.input != kNone) {
    const std::string& path = graph.inputs[meant.input].path;
    std::optional<LayerPath> parts = layers.split(path);
    if (!parts) return {{.what = What::kInput, .text = path}};
    for (auto [count, layer] : counts(parts->stack, parts->layer, depths, from)) {
      found.push_back({.what = What::kLayerInput,
                       .count = count,
                       .stack = parts->stack,
                       .layer = layer,
                       .text = parts->list,
                       .rest = parts->rest});
    }
    return found;
  }
  if (meant.node == kNone) return {};
  Home home = graph.nodes[meant.node].home;
  uint32_t at = layers.position(meant.node);
  if (home == from) return {{.what = What::kOwn, .at = at, .result = meant.result}};
  if (home.is_glue()) return {{.what = What::kGlue, .at = at, .result = meant.result}};
  auto size = static_cast<uint32_t>(layers.block(home).size());
  for (auto [count, layer] : counts(home.stack, home.layer, depths, from)) {
    for (bool from_back : {true, false}) {
      found.push_back({.what = What::kOtherLayer,
                       .count = count,
                       .from_back = from_back,
                       .stack = home.stack,
                       .layer = layer,
                       .at = from_back ? size - 1 - at : at,
                       .result = meant.result});
    }
  }
  return found;
}

std::optional<uint32_t> resolve(const Graph& graph, const Layers& layers, const InputIndex& inputs,
                                const std::vector<uint32_t>& depths, const Reference& reference, Home from) {
  using What = Reference::What;
  if (reference.what == What::kInput || reference.what == What::kLayerInput) {
    std::string path = reference.text;
    if (reference.what == What::kLayerInput) {
      std::optional<uint32_t> layer = layer_of(reference, depths, from);
      if (!layer) return std::nullopt;
      path += format(".{}{}{}", *layer, reference.rest.empty() ? "" : ".", reference.rest);
    }
    auto input = inputs.find(path);
    if (input == inputs.end()) return std::nullopt;
    return graph.inputs[input->second].value;
  }
  if (reference.what == What::kSize) return std::nullopt;
  Home home;
  if (reference.what == What::kOwn) home = from;
  if (reference.what == What::kOtherLayer) {
    std::optional<uint32_t> layer = layer_of(reference, depths, from);
    if (!layer) return std::nullopt;
    home = {reference.stack, *layer};
  }
  const std::vector<uint32_t>& block = layers.block(home);
  if (reference.at >= block.size()) return std::nullopt;
  const Node& node = graph.nodes[block[reference.from_back ? block.size() - 1 - reference.at : reference.at]];
  if (reference.result >= node.results.size()) return std::nullopt;
  return node.results[reference.result];
}

}  // namespace argosy::stamp
