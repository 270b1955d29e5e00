#include "engines/genai/decoder.h"

#include <algorithm>

#include "base/text.h"
#include "engines/genai/cache.h"
#include "engines/refused.h"

namespace argosy::engines::genai {
namespace {

/// Inputs that the engine feeds; its default names are ours, too.
constexpr std::string_view kInputs[] = {"input_ids", "inputs_embeds", "attention_mask", "position_ids"};

/// Types of version 0.18 that run as any decoder does. "gpt2" is not one: it wants keys and values in one tensor.
constexpr std::string_view kDecoderTypes[] = {
    "chatglm",   "ernie4_5", "gemma",   "gemma2",   "gemma3_text", "gemma4_text", "granite",
    "internlm2", "llama",    "mistral", "nemotron", "olmo",        "phi",         "phi3",
    "phi3small", "phimoe",   "qwen2",   "qwen3",    "smollm3",
};

constexpr std::string_view kConvType = "lfm2";

bool is_state(const ComponentInterface& component, std::string_view input) {
  return std::ranges::any_of(component.states, [&](const State& state) { return state.input == input; });
}

void add_numbers(const SourceModel& model, const Cache& cache, Section& section) {
  auto layers = static_cast<int64_t>(cache.key_value_layers.size() + cache.conv_layers.size());
  if (cache.key_value_layers.empty()) layers = static_cast<int64_t>(cache.recurrent_layers.size());
  section.numbers.emplace_back("head_size", cache.head_size);
  if (auto size = model.text_number({"hidden_size", "n_embd", "d_model", "model_dim"}))
    section.numbers.emplace_back("hidden_size", *size);
  if (auto heads = model.text_number({"num_attention_heads", "n_head", "num_heads"}))
    section.numbers.emplace_back("num_attention_heads", *heads);
  section.numbers.emplace_back("num_hidden_layers", layers);
  section.numbers.emplace_back("num_key_value_heads", cache.key_value_heads);
}

/// A list tells the engine which layers have attention and which convolutions.
Status add_layer_types(const Cache& cache, Section& section) {
  section.inputs.emplace_back("past_conv_names", "past_conv.%d");
  section.outputs.emplace_back("present_conv_names", "present_conv.%d");
  section.numbers.emplace_back("conv_cache_size", cache.conv_width);
  size_t count = cache.key_value_layers.size() + cache.conv_layers.size();
  for (size_t i = 0; i < count; ++i) {
    bool has_keys = std::ranges::binary_search(cache.key_value_layers, static_cast<int64_t>(i));
    bool has_convolution = std::ranges::binary_search(cache.conv_layers, static_cast<int64_t>(i));
    if (!has_keys && !has_convolution) return refused(kEngine, format("layer {} has no state, others have", i));
    section.layer_types.emplace_back(has_keys ? "full_attention" : "conv");
  }
  return {};
}

/// The engine pads shorter prompts of a batch at their end, and masks the padding. Some layers ignore the mask.
std::vector<std::string> padding_notes(const SourceModel& model, const Cache& cache) {
  if (!cache.recurrent_layers.empty() || !cache.conv_layers.empty()) {
    return {
        format("{}, which states of this model's layers take for text: give it prompts of one length, or one at a time",
               kPaddingNote)};
  }
  auto window = model.text_number({"sliding_window", "window_size"});
  if (!window || *window <= 0) return {};
  return {
      format("{}, which this model's windows of {} tokens count: beyond these, give it prompts of one length, or one "
             "at a time",
             kPaddingNote, *window)};
}

}  // namespace

Result<DecoderPlan> plan_decoder(const SourceModel& model, const ComponentInterface& decode) {
  DecoderPlan plan;
  ARGOSY_TRY(Cache cache, read_cache(decode));
  plan.graph = {"model.onnx", decode.name, cache.edits, std::string(kDataFile)};
  const Port* logits = decode.output("logits");
  if (logits == nullptr || !logits->size(-1)) return refused(kEngine, "it has no logits of a fixed size");
  plan.vocab_size = *logits->size(-1);
  // Samplers look at the last token alone.
  if (decode.input("attention_mask") != nullptr)
    plan.graph.further_edits.emplace_back(KeepLastLogits{"logits", "attention_mask"});
  plan.section.name = "decoder";
  plan.section.file = plan.graph.file;
  for (const Port& port : decode.inputs) {
    if (std::ranges::find(kInputs, port.name) != std::end(kInputs))
      plan.section.inputs.emplace_back(port.name, port.name);
    else if (!is_state(decode, port.name))
      return refused(kEngine, format("it would have to be given {}, which the engine does not have", port.name));
  }
  plan.section.inputs.emplace_back("past_key_names", "past_key_values.%d.key");
  plan.section.inputs.emplace_back("past_value_names", "past_key_values.%d.value");
  plan.section.outputs.emplace_back("logits", "logits");
  plan.section.outputs.emplace_back("present_key_names", "present.%d.key");
  plan.section.outputs.emplace_back("present_value_names", "present.%d.value");
  add_numbers(model, cache, plan.section);
  plan.notes = padding_notes(model, cache);
  if (!cache.conv_layers.empty()) ARGOSY_TRY_STATUS(add_layer_types(cache, plan.section));
  return plan;
}

std::string decoder_type(const SourceModel& model, const DecoderPlan& decoder) {
  if (!decoder.section.layer_types.empty()) return std::string(kConvType);
  std::string type(model.model_type());
  return std::ranges::find(kDecoderTypes, type) != std::end(kDecoderTypes) ? type : "decoder";
}

}  // namespace argosy::engines::genai
