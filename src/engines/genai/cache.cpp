#include "engines/genai/cache.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.h"

namespace argosy::engines::genai {
namespace {

/// "past_key_values.3.key" as (3, "key"), "past_key_values.3.conv_states.0" as (3, "conv_states").
struct StateName {
  int64_t layer = 0;
  std::string_view part;
};

std::optional<StateName> state_name(std::string_view name) {
  size_t first = name.find('.'), second = name.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  StateName result;
  std::string_view digits = name.substr(first + 1, second - first - 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.layer);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  result.part = name.substr(second + 1);
  if (result.part.ends_with(".0")) result.part.remove_suffix(2);  // "key.0": the first of them, or the only one
  return result;
}

std::string shape_text(const Port& port) {
  std::vector<std::string> dims;
  for (const auto& dim : port.dims) {
    const auto* number = std::get_if<int64_t>(&dim);
    dims.push_back(number != nullptr ? format("{}", *number) : std::get<std::string>(dim));
  }
  return format("[{}]", join(dims, ", "));
}

tl::unexpected<Error> refused_states(const std::string& what) {
  return fail(ErrorCode::kUnsupportedFeature, format("ONNX Runtime GenAI cannot carry this model's cache: {}", what),
              "--for plain writes the same graphs with names of their own");
}

using Layer = std::map<std::string, const State*, std::less<>>;  // states by their part of the name

Status add_keys_and_values(const ComponentInterface& decoder, int64_t number, const Layer& layer, Cache& cache) {
  const State &key = *layer.at("key"), &value = *layer.at("value");
  const Port *keys = decoder.input(key.input), *values = decoder.input(value.input);
  if (keys == nullptr || values == nullptr)
    return refused_states(format("layer {} has no input for its states", number));
  for (const Port* port : {keys, values}) {
    if (port->dims.size() != 4 || !port->size(1) || !port->size(3) || port->size(2))
      return refused_states(format("{} is {}, not [batch, heads, past, size]", port->name, shape_text(*port)));
  }
  if (keys->size(1) != values->size(1))
    return refused_states(format("keys and values of layer {} have different numbers of heads", number));
  int64_t size = std::max(*keys->size(3), *values->size(3));
  // The engine allocates both by the shape of the keys.
  if (*keys->size(3) < size) cache.edits.emplace_back(WidenState{key.input, key.output, size});
  if (*values->size(3) < size) cache.edits.emplace_back(WidenState{value.input, value.output, size});
  if (cache.key_value_layers.empty()) {
    cache.key_value_heads = *keys->size(1);
    cache.head_size = size;
  }
  cache.key_value_layers.push_back(number);
  return {};
}

Status add_convolution(const ComponentInterface& decoder, int64_t number, const State& state, Cache& cache) {
  const Port* port = decoder.input(state.input);
  if (port == nullptr || port->dims.size() != 3 || !port->size(1) || !port->size(2))
    return refused_states(format("{} is not [batch, channels, width]", state.input));
  cache.edits.emplace_back(RenameInput{state.input, format("past_conv.{}", number)});
  cache.edits.emplace_back(RenameOutput{state.output, format("present_conv.{}", number)});
  if (cache.conv_layers.empty()) cache.conv_width = *port->size(2);
  cache.conv_layers.push_back(number);
  return {};
}

/// The engine lets input and output of these states share memory. ONNX Runtime happened to run the nodes of all models
/// that were tried in an order that is right without PostponeOutput, but nothing guarantees it.
Status add_recurrent_states(const ComponentInterface& decoder, int64_t number, const Layer& layer, Cache& cache) {
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {{"conv_states", "conv_state"},
                                                                      {"recurrent_states", "recurrent_state"}};
  for (const auto& [ours, theirs] : kParts) {
    const State& state = *layer.find(ours)->second;
    const Port* port = decoder.input(state.input);
    if (port == nullptr) return refused_states(format("layer {} has no input for its states", number));
    for (size_t i = 1; i < port->dims.size(); ++i) {
      if (!port->size(static_cast<int>(i)))
        return refused_states(format("{} is {}, and only batches may vary", state.input, shape_text(*port)));
    }
    cache.edits.emplace_back(PostponeOutput{state.output, "logits"});
    cache.edits.emplace_back(RenameInput{state.input, format("past_key_values.{}.{}", number, theirs)});
    cache.edits.emplace_back(RenameOutput{state.output, format("present.{}.{}", number, theirs)});
  }
  cache.recurrent_layers.push_back(number);
  return {};
}

/// Whether a layer has exactly these states.
bool has_just(const Layer& layer, std::initializer_list<std::string_view> parts) {
  return layer.size() == parts.size() && std::ranges::all_of(parts, [&](auto part) { return layer.contains(part); });
}

}  // namespace

Result<Cache> read_cache(const ComponentInterface& decoder) {
  std::map<int64_t, Layer> layers;
  for (const State& state : decoder.states) {
    std::optional<StateName> name = state_name(state.input);
    if (!name) return refused_states(format("it does not know a state called {}", state.input));
    layers[name->layer].emplace(name->part, &state);
  }
  Cache cache;
  for (const auto& [number, layer] : layers) {
    bool has_keys = layer.contains("key") && layer.contains("value");
    bool has_recurrent = layer.contains("conv_states") && layer.contains("recurrent_states");
    if (has_just(layer, {"conv_states"})) {
      ARGOSY_TRY_STATUS(add_convolution(decoder, number, *layer.begin()->second, cache));
    } else if (layer.size() == (has_keys ? 2U : 0U) + (has_recurrent ? 2U : 0U)) {
      if (has_keys) ARGOSY_TRY_STATUS(add_keys_and_values(decoder, number, layer, cache));
      if (has_recurrent) ARGOSY_TRY_STATUS(add_recurrent_states(decoder, number, layer, cache));
    } else {
      std::vector<std::string> parts;
      for (const auto& [part, state] : layer) parts.push_back(part);
      return refused_states(format("layer {} has {}", number, join(parts, ", ")));
    }
  }
  if (!cache.conv_layers.empty() && (cache.key_value_layers.empty() || !cache.recurrent_layers.empty()))
    return refused_states("it has layers with a convolution state alone, and not all others have keys and values");
  if (layers.empty()) return refused_states("it has none");
  return cache;
}

}  // namespace argosy::engines::genai
