#include "engines/transformersjs/lint_tables.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "engines/transformersjs/model_types.h"

namespace argosy::engines::transformersjs {
namespace {

/// Classes whose models are not one graph called "model".
struct ClassRow {
  std::string_view name;
  std::string_view graphs;  // separated by spaces
};
constexpr std::string_view kSeq2Seq = "encoder_model decoder_model_merged";
constexpr std::string_view kImageText = "embed_tokens decoder_model_merged vision_encoder";
constexpr std::string_view kAudioText = "embed_tokens decoder_model_merged audio_encoder";
constexpr std::string_view kMasks = "vision_encoder prompt_encoder_mask_decoder";
constexpr std::string_view kAutoEncoder = "encoder_model decoder_model";
constexpr ClassRow kClasses[] = {
    {"BartForConditionalGeneration", kSeq2Seq},
    {"BartModel", kSeq2Seq},
    {"BlenderbotForConditionalGeneration", kSeq2Seq},
    {"BlenderbotModel", kSeq2Seq},
    {"BlenderbotSmallForConditionalGeneration", kSeq2Seq},
    {"BlenderbotSmallModel", kSeq2Seq},
    {"CohereAsrForConditionalGeneration", kSeq2Seq},
    {"DacModel", kAutoEncoder},
    {"EdgeTamModel", kMasks},
    {"Florence2ForConditionalGeneration", "embed_tokens decoder_model_merged vision_encoder encoder_model"},
    {"Gemma3ForConditionalGeneration", kImageText},
    {"Gemma3nForConditionalGeneration", "embed_tokens decoder_model_merged audio_encoder vision_encoder"},
    {"Gemma4ForConditionalGeneration", "embed_tokens decoder_model_merged audio_encoder vision_encoder"},
    {"GlmOcrForConditionalGeneration", kImageText},
    {"GraniteSpeechForConditionalGeneration", kAudioText},
    {"Idefics3ForConditionalGeneration", kImageText},
    {"Lfm2VlForConditionalGeneration", kImageText},
    {"LightOnOcrForConditionalGeneration", kImageText},
    {"LiteWhisperForConditionalGeneration", kSeq2Seq},
    {"LlavaForConditionalGeneration", kImageText},
    {"LlavaOnevisionForConditionalGeneration", kImageText},
    {"LlavaQwen2ForCausalLM", kImageText},
    {"LongT5ForConditionalGeneration", kSeq2Seq},
    {"LongT5Model", kSeq2Seq},
    {"M2M100ForConditionalGeneration", kSeq2Seq},
    {"M2M100Model", kSeq2Seq},
    {"MBartForConditionalGeneration", kSeq2Seq},
    {"MBartModel", kSeq2Seq},
    {"MT5ForConditionalGeneration", kSeq2Seq},
    {"MT5Model", kSeq2Seq},
    {"MarianMTModel", kSeq2Seq},
    {"MarianModel", kSeq2Seq},
    {"MimiModel", kAutoEncoder},
    {"Mistral3ForConditionalGeneration", kImageText},
    {"Moondream1ForConditionalGeneration", kImageText},
    {"MoonshineForConditionalGeneration", kSeq2Seq},
    {"MusicgenForConditionalGeneration", "text_encoder decoder_model_merged encodec_decode"},
    {"PaliGemmaForConditionalGeneration", kImageText},
    {"Phi3VForCausalLM", "prepare_inputs_embeds model vision_encoder"},
    {"Qwen2VLForConditionalGeneration", kImageText},
    {"Qwen2_5_VLForConditionalGeneration", kImageText},
    {"Qwen3VLForConditionalGeneration", kImageText},
    {"Qwen3VLMoeForConditionalGeneration", kImageText},
    {"Qwen3_5ForConditionalGeneration", kImageText},
    {"Qwen3_5MoeForConditionalGeneration", kImageText},
    {"Sam2Model", kMasks},
    {"Sam3TrackerModel", kMasks},
    {"SamModel", kMasks},
    {"SmolVLMForConditionalGeneration", kImageText},
    {"SnacModel", kAutoEncoder},
    {"SpeechT5ForSpeechToText", kSeq2Seq},
    {"SpeechT5ForTextToSpeech", kSeq2Seq},
    {"T5ForConditionalGeneration", kSeq2Seq},
    {"T5Model", kSeq2Seq},
    {"UltravoxModel", kAudioText},
    {"VisionEncoderDecoderModel", kSeq2Seq},
    {"VoxtralForConditionalGeneration", kAudioText},
    {"VoxtralRealtimeForConditionalGeneration", kAudioText},
    {"WhisperForConditionalGeneration", kSeq2Seq},
    {"WhisperModel", kSeq2Seq},
};

/// A row of types, and the key that they share.
struct TypeRow {
  std::string_view key;    // of config.json
  std::string_view types;  // separated by spaces
};
/// Types besides those of model_types.h, by the key that has the number of their layers: parts of larger models.
constexpr TypeRow kMoreDecoders[] = {
    {"num_hidden_layers",
     "gemma3n_text glm_moe_dsa glm_ocr_text llava_qwen2 phi3_v qwen2_5_vl_text qwen2_vl qwen2_vl_text "
     "qwen3_vl_moe_text "
     "qwen3_vl_text voxtral_realtime_text"},
};
constexpr TypeRow kMoreSeq2Seq[] = {
    {"decoder_layers", "florence2_language lite-whisper speecht5 trocr"},
    {"num_hidden_layers", "cohere_asr musicgen_decoder"},
};
/// Types whose decoder is described by a part of the configuration.
constexpr TypeRow kNested[] = {
    {"text_config",
     "llava paligemma gemma3 florence2 llava_onevision idefics3 granite_speech ultravox voxtral smolvlm gemma3n "
     "chatterbox "
     "lighton_ocr glm_ocr mistral3 qwen2_5_vl qwen3_vl qwen3_vl_moe"},
    {"phi_config", "moondream1"},
    {"decoder", "musicgen vision-encoder-decoder"},
    {"language_config", "multi_modality"},
};
/// The same for types with states besides keys and values: the engine has names for them that are not repeated here.
constexpr std::string_view kMoreHybrid =
    "deepseek_v4 gemma4 gemma4_text lfm2_vl olmo_hybrid qwen3_5 qwen3_5_moe voxtral_realtime zaya";

constexpr DataTypeSuffix kDataTypes[] = {
    {"fp32", ""},         {"fp16", "_fp16"}, {"int8", "_int8"},   {"uint8", "_uint8"},
    {"q8", "_quantized"}, {"q4", "_q4"},     {"q4f16", "_q4f16"}, {"q2", "_q2"},
    {"q2f16", "_q2f16"},  {"q1", "_q1"},     {"q1f16", "_q1f16"}, {"bnb4", "_bnb4"},
};

bool has_word(std::string_view words, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    bool starts = at == 0 || words[at - 1] == ' ';
    bool ends = at + word.size() == words.size() || words[at + word.size()] == ' ';
    if (starts && ends) return true;
  }
  return false;
}

template <size_t kCount>
const TypeRow* row_of(const TypeRow (&rows)[kCount], std::string_view type) {
  for (const TypeRow& row : rows) {
    if (has_word(row.types, type)) return &row;
  }
  return nullptr;
}

template <size_t kCount>
std::optional<std::string_view> key_of(const TypeRow (&rows)[kCount], std::string_view type,
                                       std::optional<std::string_view> known) {
  if (known) return known;
  const TypeRow* row = row_of(rows, type);
  return row == nullptr ? std::nullopt : std::optional(row->key);
}

constexpr int64_t kMaxLayers = 10'000;

int64_t layers_of(JsonView config, std::string_view key) {
  return std::clamp(config.find(key).as_integer().value_or(0), int64_t{0}, kMaxLayers);
}

}  // namespace

std::vector<std::string> sessions(JsonView config) {
  std::string_view graphs = "model";
  bool is_encoder_decoder = config.find("is_encoder_decoder").as_bool().value_or(false);
  for (JsonView name : config.find("architectures").items()) {
    // Detection models are encoder-decoders, too, in one graph.
    if (is_encoder_decoder && name.as_string().value_or("").ends_with("ForConditionalGeneration")) graphs = kSeq2Seq;
    for (const ClassRow& row : kClasses) {
      if (row.name == name.as_string()) graphs = row.graphs;
    }
  }
  std::vector<std::string> names;
  while (!graphs.empty()) {
    size_t space = std::min(graphs.find(' '), graphs.size());
    names.emplace_back(graphs.substr(0, space));
    graphs.remove_prefix(std::min(space + 1, graphs.size()));
  }
  return names;
}

CacheNames cache_names(JsonView config) {
  CacheNames cache;
  std::string_view type = config.find("model_type").as_string().value_or("");
  bool is_vision_decoder = type == "vision-encoder-decoder";
  if (const TypeRow* row = row_of(kNested, type)) {
    config = config.find(row->key);
    type = config.find("model_type").as_string().value_or("");
  }
  if (hybrid_type(type) != nullptr || has_word(kMoreHybrid, type)) {
    cache.is_known = true;
    return cache;
  }
  auto add = [&](std::string_view key, std::initializer_list<std::string_view> roles) {
    int64_t layers = layers_of(config, key);
    for (int64_t layer = 0; layer < layers; ++layer) {
      for (std::string_view role : roles) cache.names.insert(format("past_key_values.{}.{}", layer, role));
    }
    cache.is_known = true;
    cache.is_complete = layers < kMaxLayers;
  };
  if (auto decoder = key_of(kMoreSeq2Seq, type, seq2seq_layers_key(type))) {
    add(*decoder, {"decoder.key", "decoder.value", "encoder.key", "encoder.value"});
    // Which of these it is depends on flags of the model around it.
    if (is_vision_decoder) add(*decoder, {"key", "value"});
  } else if (auto layers = key_of(kMoreDecoders, type, decoder_layers_key(type))) {
    if (type == "gpt_bigcode" && config.find("multi_query").as_bool().value_or(false))
      add(*layers, {"key_value"});
    else
      add(*layers, {"key", "value"});
  }
  return cache;
}

std::span<const DataTypeSuffix> data_types() { return kDataTypes; }

int64_t declared_chunks(JsonView config, std::string_view file, std::string_view base) {
  JsonView declared = config.find("transformers.js_config").find("use_external_data_format");
  if (declared.is_object()) {
    JsonView whole = declared.find(file);
    declared = whole.is_valid() ? whole : declared.find(base);
  }
  if (auto flag = declared.as_bool()) return *flag ? 1 : 0;
  return declared.as_integer().value_or(0);
}

}  // namespace argosy::engines::transformersjs
