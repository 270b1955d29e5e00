#include "engines/transformersjs/states.h"

#include <charconv>
#include <map>
#include <optional>

#include "base/text.h"
#include "engines/transformersjs/model_types.h"

namespace argosy::engines::transformersjs {
namespace {

using Layer = std::map<std::string, const State*, std::less<>>;  // states by the rest of their name

tl::unexpected<Error> refused_states(const std::string& what) {
  return fail(ErrorCode::kUnsupportedFeature, format("transformers.js cannot carry this model's cache: {}", what),
              "--for plain writes the same graphs with names of their own");
}

/// "past_key_values.3.key" is the state "key" of layer 3, "past_key_values.3.conv_states.0" its state "conv_states.0".
Result<std::map<int64_t, Layer>> read_layers(const ComponentInterface& decoder) {
  std::map<int64_t, Layer> layers;
  for (const State& state : decoder.states) {
    std::string_view name = state.input;
    size_t first = name.find('.'), second = first == std::string_view::npos ? first : name.find('.', first + 1);
    int64_t number = -1;
    if (second != std::string_view::npos) {
      std::string_view digits = name.substr(first + 1, second - first - 1);
      auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (error != std::errc() || end != digits.data() + digits.size()) number = -1;
    }
    if (number < 0) return refused_states(format("it has no name for the state {}", name));
    layers[number].emplace(name.substr(second + 1), &state);
  }
  return layers;
}

bool has_key_and_value(const Layer& layer) { return layer.contains("key") && layer.contains("value"); }

std::string parts_of(const Layer& layer) {
  std::vector<std::string> parts;
  for (const auto& [part, state] : layer) parts.push_back(part);
  return join(parts, ", ");
}

void rename(const State& state, const std::string& name, std::vector<Edit>& edits) {
  edits.emplace_back(RenameInput{state.input, "past_" + name});
  edits.emplace_back(RenameOutput{state.output, "present_" + name});
}

/// Keys and values keep their names; other states are named after their kind.
Status rename_others(const HybridType& type, int64_t number, const Layer& layer, std::vector<Edit>& edits) {
  for (const auto& [part, state] : layer) {
    if (part == "key" || part == "value") continue;
    if (part.starts_with("conv")) {
      rename(*state, format("conv.{}", number), edits);
    } else if ((part.starts_with("recurrent") || part.starts_with("ssm")) && !type.second.empty()) {
      rename(*state, format("{}.{}", type.second, number), edits);
    } else {
      return refused_states(format("layer {} has {}", number, parts_of(layer)));
    }
  }
  return {};
}

}  // namespace

Result<StatePlan> plan_states(const SourceModel& model, const ComponentInterface& decoder, const std::string& part) {
  ARGOSY_TRY(auto layers, read_layers(decoder));
  if (layers.empty()) return refused_states("it has none");
  StatePlan plan;
  bool is_plain = true;
  for (const auto& [number, layer] : layers) is_plain = is_plain && layer.size() == 2 && has_key_and_value(layer);
  if (is_plain) {
    // The engine counts layers from 0.
    for (const auto& [number, layer] : layers) {
      if (number != plan.key_value_layers++)
        return refused_states(format("layer {} has no states", plan.key_value_layers - 1));
    }
    return plan;
  }
  JsonView config = model.config->root();
  if (!part.empty()) config = config.find(part);
  std::string_view model_type = config.find("model_type").as_string().value_or("");
  const HybridType* type = hybrid_type(model_type);
  for (const auto& [number, layer] : layers) {
    if (layer.size() == 2 && has_key_and_value(layer)) continue;
    if (type == nullptr) {
      return refused_states(format("layer {} has {}, and it has no names for these in models of the type {}", number,
                                   parts_of(layer), quoted(model_type)));
    }
    ARGOSY_TRY_STATUS(rename_others(*type, number, layer, plan.edits));
  }
  return plan;
}

}  // namespace argosy::engines::transformersjs
