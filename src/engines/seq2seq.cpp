#include "engines/seq2seq.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "engines/refused.h"

namespace argosy::engines {

Result<Seq2SeqPlan> plan_seq2seq(const SourceModel& model, std::string_view engine) {
  const ComponentInterface *encoder = model.component("encoder"), *decoder = model.component("decoder");
  if (encoder == nullptr || decoder == nullptr) return refused(engine, "it is no encoder and decoder");
  if (encoder->output("last_hidden_state") == nullptr || decoder->input("encoder_hidden_states") == nullptr)
    return refused(engine, "its encoder and decoder do not pass hidden states on");
  Seq2SeqPlan plan;
  for (const Port& port : encoder->outputs) {
    if (port.name != "last_hidden_state") plan.encoder.emplace_back(DropOutput{port.name});
  }

  if (decoder->input("decoder_input_ids") != nullptr)
    plan.decoder.emplace_back(RenameInput{"decoder_input_ids", "input_ids"});
  if (decoder->input("attention_mask") != nullptr)
    plan.decoder.emplace_back(RenameInput{"attention_mask", "encoder_attention_mask"});

  ComputeCrossStates cross{"encoder", "last_hidden_state", "encoder_hidden_states", {}};
  std::set<std::string, std::less<>> expected = {"decoder_input_ids", "input_ids", "attention_mask",
                                                 "encoder_attention_mask", "encoder_hidden_states"};
  for (;; ++plan.layers) {
    std::string past = format("past_key_values.{}", plan.layers);
    if (decoder->input(past + ".decoder.key") == nullptr) break;
    for (std::string_view part : {"decoder.key", "decoder.value", "encoder.key", "encoder.value"}) {
      std::string& name = plan.states.emplace_back(format("{}.{}", past, part));
      if (decoder->input(name) == nullptr) return refused(engine, format("layer {} has no {}", plan.layers, part));
      expected.insert(name);
      if (!part.starts_with("encoder")) continue;
      std::string computed = format("cross.{}.{}", plan.layers, part.substr(8));
      if (encoder->output(computed) == nullptr)
        return refused(engine, format("its encoder does not give {}", computed));
      cross.states.push_back({computed, name, format("present.{}.{}", plan.layers, part)});
    }
  }
  if (plan.layers == 0) return refused(engine, "its decoder has no states");
  for (const Port& port : decoder->inputs) {
    if (!expected.contains(port.name))
      return refused(engine,
                     format("its decoder would have to be given {}, which the engine does not have", port.name));
  }
  plan.decoder.emplace_back(std::move(cross));
  return plan;
}

}  // namespace argosy::engines
