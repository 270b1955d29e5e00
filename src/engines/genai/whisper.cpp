#include "engines/genai/whisper.h"

#include <algorithm>

#include "base/text.h"
#include "engines/companions.h"
#include "engines/genai/config.h"
#include "engines/genai/decoder.h"
#include "engines/genai/processor.h"
#include "engines/refused.h"

namespace argosy::engines::genai {
namespace {

constexpr int64_t kFrames = 3000;

/// Sizes of a state [batch, heads, length, size].
void add_sizes(const Port& state, int64_t hidden_size, int64_t layers, Section& section) {
  section.numbers = {{"head_size", state.size(3).value_or(0)},
                     {"hidden_size", hidden_size},
                     {"num_attention_heads", state.size(1).value_or(0)},
                     {"num_hidden_layers", layers},
                     {"num_key_value_heads", state.size(1).value_or(0)}};
}

/// The engine finds states by these names: all layers must have them.
Status check_names(const ComponentInterface& encoder, const ComponentInterface& decoder, int64_t layers) {
  for (int64_t i = 0; i < layers; ++i) {
    for (std::string_view part : {"key", "value"}) {
      for (std::string_view kind : {"decoder", "encoder"}) {
        const Port* port = decoder.input(format("past_key_values.{}.{}.{}", i, kind, part));
        if (port == nullptr || port->dims.size() != 4 || !port->size(1) || !port->size(3))
          return refused(kEngine, format("layer {} has no {} [batch, heads, length, size] of its {}", i, part, kind));
      }
      if (encoder.output(format("cross.{}.{}", i, part)) == nullptr)
        return refused(kEngine, format("its encoder does not give the {}s of layer {}", part, i));
      if (decoder.output(format("present.{}.decoder.{}", i, part)) == nullptr)
        return refused(kEngine, format("its decoder does not give back the {}s of layer {}", part, i));
    }
  }
  return {};
}

Section encoder_section(const Port& sound, const Port& hidden, const Port& state, int64_t layers) {
  Section section;
  section.name = "encoder";
  section.file = "encoder.onnx";
  section.inputs = {{"audio_features", sound.name}};
  section.outputs = {{"encoder_hidden_states", hidden.name},
                     {"cross_present_key_names", "cross.%d.key"},
                     {"cross_present_value_names", "cross.%d.value"}};
  add_sizes(state, hidden.size(2).value_or(0), layers, section);
  return section;
}

Section decoder_section(const Port& state, int64_t hidden_size, int64_t layers) {
  Section section;
  section.name = "decoder";
  section.file = "decoder.onnx";
  section.inputs = {{"input_ids", "decoder_input_ids"},
                    {"past_key_names", "past_key_values.%d.decoder.key"},
                    {"past_value_names", "past_key_values.%d.decoder.value"},
                    {"cross_past_key_names", "past_key_values.%d.encoder.key"},
                    {"cross_past_value_names", "past_key_values.%d.encoder.value"}};
  section.outputs = {{"logits", "logits"},
                     {"present_key_names", "present.%d.decoder.key"},
                     {"present_value_names", "present.%d.decoder.value"}};
  add_sizes(state, hidden_size, layers, section);
  return section;
}

}  // namespace

bool is_whisper(const SourceModel& model) {
  const ComponentInterface *encoder = model.component("encoder"), *decoder = model.component("decoder");
  return encoder != nullptr && decoder != nullptr && encoder->input("input_features") != nullptr &&
         decoder->input("decoder_input_ids") != nullptr;
}

Result<BundlePlan> plan_whisper(const SourceModel& model) {
  const ComponentInterface &encoder = *model.component("encoder"), &decoder = *model.component("decoder");
  const Port *sound = encoder.input("input_features"), *hidden = encoder.output("last_hidden_state");
  const Port* logits = decoder.output("logits");
  if (encoder.inputs.size() != 1 || sound->dims.size() != 3 || !sound->size(1))
    return refused(kEngine, "its encoder wants more than a spectrogram [batch, bins, frames]");
  if (sound->size(2) != kFrames)
    return refused(kEngine, format("it wants spectrograms of {} frames, and the engine's have {}",
                                   sound->size(2).value_or(0), kFrames));
  if (hidden == nullptr || !hidden->size(2))
    return refused(kEngine, "its encoder has no hidden states of a fixed size");
  if (logits == nullptr || !logits->size(-1)) return refused(kEngine, "it has no logits of a fixed size");
  int64_t layers =
      std::ranges::count_if(decoder.states, [](const State& state) { return state.input.ends_with(".decoder.key"); });
  if (layers == 0) return refused(kEngine, "its decoder has no states");
  ARGOSY_TRY_STATUS(check_names(encoder, decoder, layers));
  BundlePlan plan;
  std::vector<Edit> edits;
  for (const Port& port : decoder.inputs) {
    bool is_state = port.name.starts_with("past_key_values.");
    // Only cross states depend on the encoder, and the decoder is given these.
    if (port.name == "encoder_hidden_states")
      edits.emplace_back(DropInput{port.name});
    else if (!is_state && port.name != "decoder_input_ids")
      return refused(kEngine,
                     format("its decoder would have to be given {}, which the engine does not have", port.name));
  }
  const Port &self = *decoder.input("past_key_values.0.decoder.key"),
             &cross = *decoder.input("past_key_values.0.encoder.key");
  plan.graphs.push_back({"encoder.onnx", encoder.name, {}, std::string(kDataFile)});
  plan.graphs.push_back({"decoder.onnx", decoder.name, std::move(edits), std::string(kDataFile)});

  Config config;
  config.type = "whisper";
  config.context_length = context_length(model);
  config.vocab_size = *logits->size(-1);
  if (auto start = model.token_ids("decoder_start_token_id"); !start.empty())
    config.tokens.emplace_back("decoder_start_token_id", start[0]);
  config.sections.push_back(encoder_section(*sound, *hidden, cross, layers));
  config.sections.push_back(decoder_section(self, *hidden->size(2), layers));
  Section speech;
  speech.name = "speech";
  speech.texts = {{"config_filename", std::string(kAudioProcessorFile)}};
  config.sections.push_back(std::move(speech));
  ARGOSY_TRY(ProcessorSettings settings, ProcessorSettings::read(model, "feature_extractor"));
  ARGOSY_TRY(std::string processor, spectrogram_processor(settings, *sound->size(1)));
  plan.files.push_back({std::string(kConfigFile), config_text(config, model)});
  plan.files.push_back({std::string(kAudioProcessorFile), std::move(processor)});
  plan.copied = companion_files(model);
  plan.usage = processor_usage("speech.wav", "<|startoftranscript|><|en|><|transcribe|><|notimestamps|>",
                               R"(processor([prompt], audios=og.Audios.open("speech.wav")))",
                               std::min<int64_t>(448, config.context_length)) +
               "\nPrompts of a batch must have equal lengths; each has its own sound.\n";
  plan.notes.emplace_back(
      "The engine's spectrograms differ from transformers' in four frames: it puts silence before a sound, which "
      "transformers mirrors there, and leaves out the two frames at the end that reach into the silence after it.");
  return plan;
}

}  // namespace argosy::engines::genai
