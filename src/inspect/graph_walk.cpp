#include "inspect/graph_walk.h"

#include <algorithm>
#include <span>

namespace argosy {
namespace {

constexpr uint32_t kNothing = OnnxNode::kNothing;
constexpr int kWeightSteps = 4;

constexpr std::string_view kThrough[] = {"Add",      "Cast", "Clip", "Concat",    "Div",       "Dropout", "Expand",
                                         "Identity", "Max",  "Min",  "Mul",       "Reshape",   "Slice",   "Squeeze",
                                         "Sub",      "Tanh", "Tile", "Transpose", "Unsqueeze", "Where"};
constexpr std::string_view kProducts[] = {"MatMul", "FusedMatMul", "Gemm", "Einsum"};
constexpr std::string_view kKeepsWeight[] = {"Cast", "DequantizeLinear", "Identity", "Reshape", "Transpose"};

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

GraphWalk::GraphWalk(const OnnxModel& model) : graph_(model.graph) {
  size_t values = graph_.values.size();
  makers_.assign(values, kNothing);
  inputs_.assign(values, kNothing);
  is_initializer_.assign(values, false);
  readers_.assign(values, 0);
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    for (uint32_t output : graph_.nodes[i].outputs) {
      if (output != kNothing && makers_[output] == kNothing) makers_[output] = i;
    }
    for (uint32_t each : graph_.nodes[i].inputs) {
      if (each != kNothing) ++readers_[each];
    }
  }
  for (uint32_t i = 0; i < graph_.inputs.size(); ++i) {
    if (graph_.inputs[i] != kNothing) inputs_[graph_.inputs[i]] = i;
  }
  for (uint32_t value : graph_.initializers) {
    if (value != kNothing) is_initializer_[value] = true;
  }
  for (const auto& [domain, op] : graph_.ops) is_through_.push_back(domain.empty() && contains(kThrough, op));
}

std::optional<uint32_t> GraphWalk::maker(uint32_t value) const {
  if (value == kNothing || makers_[value] == kNothing) return std::nullopt;
  return makers_[value];
}

std::optional<uint32_t> GraphWalk::maker_past_casts(uint32_t value) const {
  std::optional<uint32_t> node = maker(value);
  for (int i = 0; i < 2 && node && is(*node, "Cast"); ++i) node = maker(input(*node, 0));
  return node;
}

std::optional<uint32_t> GraphWalk::made_by(uint32_t value, std::string_view op) const {
  std::optional<uint32_t> node = maker_past_casts(value);
  return node && is(*node, op) ? node : std::nullopt;
}

uint32_t GraphWalk::input(uint32_t node, size_t place) const {
  const std::vector<uint32_t>& inputs = graph_.nodes[node].inputs;
  return place < inputs.size() ? inputs[place] : kNothing;
}

bool GraphWalk::is_weight(uint32_t value) const {
  for (int i = 0; i < kWeightSteps && value != kNothing; ++i) {
    if (is_initializer_[value]) return true;
    std::optional<uint32_t> node = maker(value);
    if (!node || !contains(kKeepsWeight, graph_.ops[graph_.nodes[*node].op].second)) return false;
    value = input(*node, 0);
  }
  return false;
}

std::optional<uint32_t> GraphWalk::graph_input(uint32_t value) const {
  if (value == kNothing || inputs_[value] == kNothing) return std::nullopt;
  return inputs_[value];
}

bool GraphWalk::is_product(uint32_t node) const {
  const auto& [domain, op] = graph_.ops[graph_.nodes[node].op];
  return (domain.empty() || domain == "com.microsoft") && contains(kProducts, op);
}

}  // namespace argosy
