#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/checked_math.h"
#include "base/text.h"
#include "inspect/graph_report.h"
#include "inspect/graph_walk.h"
#include "io/onnx/onnx_fields.h"

namespace argosy {
namespace {

/// What of a name a past state and the present one have in common; empty: it is neither. Dots and underscores are
/// alike, since torch.export writes some as the others.
std::string state_name(std::string_view name, std::string_view word) {
  if (!name.starts_with(word) || name.find("length") != std::string_view::npos) return "";
  name.remove_prefix(word.size());
  if (constexpr std::string_view kLong = "_key_values"; name.starts_with(kLong)) name.remove_prefix(kLong.size());
  std::string rest(name);
  std::ranges::replace(rest, '.', '_');
  return rest.empty() ? "_" : rest;
}

/// How many bytes a state of a batch of one takes, for each token if one dim beside the first varies.
void measure(const OnnxValue& value, CacheState& state) {
  const auto* type =
      std::ranges::find_if(kOnnxElementTypes, [&](const OnnxElementType& each) { return value.type == each.text; });
  if (type == std::ranges::end(kOnnxElementTypes) || !type->dtype || !value.has_shape) return;
  std::optional<int64_t> bits = bits_of(*type->dtype);
  size_t growing = 0;
  for (size_t i = 0; i < value.shape.size() && bits; ++i) {
    const OnnxDim& dim = value.shape[i];
    if (dim.value) {
      bits = *dim.value < 0 ? std::nullopt : checked_mul(*bits, *dim.value);
    } else if (i == 0) {
      if (dim.name.find('*') != std::string::npos) return;  // the batch and more
    } else {
      state.dim = dim.name.empty() ? "?" : dim.name;
      ++growing;
    }
  }
  if (growing > 1) state.dim.clear();
  if (growing <= 1 && bits) state.bytes = (static_cast<uint64_t>(*bits) + 7) / 8;
}

}  // namespace

std::vector<CacheState> cache_states(const OnnxModel& model) {
  std::vector<CacheState> states;
  std::unordered_map<std::string, size_t> by_name;  // looked up, never iterated
  for (uint32_t i = 0; i < model.inputs.size(); ++i) {
    std::string name = state_name(model.inputs[i].name, "past");
    if (name.empty()) continue;
    by_name.emplace(std::move(name), states.size());
    CacheState& state = states.emplace_back();
    state.input = i;
    measure(model.inputs[i], state);
  }
  GraphWalk walk(model);
  for (uint32_t i = 0; i < model.outputs.size(); ++i) {
    std::string name = state_name(model.outputs[i].name, "present");
    if (name.empty()) continue;
    auto found = by_name.find(name);
    if (found == by_name.end()) {
      CacheState& state = states.emplace_back();
      state.output = i;
      measure(model.outputs[i], state);
      continue;
    }
    CacheState& state = states[found->second];
    state.output = i;
    if (!state.bytes) measure(model.outputs[i], state);  // dims of the input may be free where only some calls use it
    std::optional<uint32_t> node = walk.maker(model.graph.outputs[i]);
    if (!node) continue;
    const std::vector<uint32_t>& inputs = walk.node(*node).inputs;
    const auto& [domain, op] = model.graph.ops[walk.node(*node).op];
    if (std::ranges::find(inputs, model.graph.inputs[*state.input]) != inputs.end())
      state.joined_by = onnx_op_name(domain, op);
  }
  return states;
}

std::optional<uint64_t> CacheTotal::bytes_at(uint64_t tokens) const {
  uint64_t result = 0;
  if (!is_known) return std::nullopt;
  if (dim.empty()) return bytes;
  return __builtin_mul_overflow(bytes, tokens, &result) ? std::nullopt : std::optional(result);
}

std::vector<CacheTotal> cache_totals(const std::vector<CacheState>& states) {
  std::map<std::pair<int, std::string>, CacheTotal> totals;  // in the order of the list
  CacheTotal unknown{.is_known = false};
  for (const CacheState& state : states) {
    CacheTotal& total = totals[{state.dim.empty() ? 1 : 0, state.dim}];
    uint64_t sum = 0;
    bool is_known = state.bytes && !__builtin_add_overflow(total.bytes, *state.bytes, &sum);
    total.dim = state.dim;
    if (is_known) total.bytes = sum;
    ++(is_known ? total : unknown).states;
  }
  std::vector<CacheTotal> list;
  for (auto& [key, total] : totals) {
    if (total.states > 0) list.push_back(std::move(total));
  }
  if (unknown.states > 0) list.push_back(std::move(unknown));
  return list;
}

}  // namespace argosy
