#include "backends/executorch/generation/cross_states.h"

#include <algorithm>

#include "border/bind_graphs.h"
#include "border/border.h"
#include "io/json.h"

namespace argosy::executorch {
namespace {

constexpr std::string_view kHiddenInput = "encoder_hidden_states";

}  // namespace

Result<std::string> wired_output(const Program& program, const std::string& from, const std::string& to,
                                 const std::string& input) {
  auto attribute = program.attributes.find("capture.wiring");
  if (attribute == program.attributes.end()) return std::string();
  ARGOSY_TRY(JsonDocument wiring, JsonDocument::parse(attribute->second, "capture.wiring"));
  for (JsonView wire : wiring.root().items()) {
    std::string source(wire.find("from").as_string().value_or("")), target(wire.find("to").as_string().value_or(""));
    if (!source.starts_with(from + ".") || !target.starts_with(to + ".")) continue;
    std::string name = target.substr(to.size() + 1);
    std::string flat = name;
    std::ranges::replace(flat, '.', '_');
    if (name == input || flat == input) return source.substr(from.size() + 1);
  }
  return std::string();
}

Status compute_cross_states(Program& program, const Component& encoder, Component& decoder) {
  const InputSpec* hidden_input = find_input(decoder, kHiddenInput);
  if (hidden_input == nullptr || !hidden_input->value.is_valid())
    return fail(ErrorCode::kUnsupportedFeature, "the decoder is not given the encoder's hidden states");
  ARGOSY_TRY(std::string hidden, wired_output(program, encoder.name, decoder.name, std::string(kHiddenInput)));
  if (hidden.empty()) return fail(ErrorCode::kUnsupportedFeature, "the encoder does not give its hidden states");
  ComputeCrossStates edit{encoder.name, hidden, std::string(kHiddenInput), {}};
  for (const InputSpec& input : decoder.inputs) {
    if (input.name == kHiddenInput || !input.value.is_valid()) continue;
    ARGOSY_TRY(std::string name, wired_output(program, encoder.name, decoder.name, input.name));
    if (!name.empty()) edit.states.push_back({name, input.name, ""});
  }
  return edit.states.empty() ? Status() : apply_edits(program, decoder, std::vector<Edit>{std::move(edit)});
}

}  // namespace argosy::executorch
