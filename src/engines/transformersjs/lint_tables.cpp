#include "engines/transformersjs/lint_tables.h"

#include <algorithm>
#include <array>

#include "base/text.h"

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

/// Types of decoders by the key that has the number of their layers.
struct TypeRow {
  std::string_view layers;
  std::string_view types;  // separated by spaces
};
constexpr TypeRow kDecoders[] = {
    {"n_layer", "gpt2 gptj jais codegen gpt_bigcode bloom"},
    {"num_hidden_layers",
     "gpt_neox stablelm opt falcon modernbert-decoder gpt_oss llama llama4_text nanochat apertus arcee afmoe smollm3 "
     "olmo "
     "olmo2 olmo3 mobilellm granite cohere cohere2 mistral voxtral_realtime_text starcoder2 qwen2 qwen2_moe qwen2_vl "
     "qwen2_vl_text qwen2_5_vl_text qwen3_moe qwen3_vl_text qwen3_vl_moe_text phi phi3 phi3_v llava_qwen2 qwen3 "
     "solar_open "
     "glm_ocr_text gemma gemma2 vaultgemma gemma3_text gemma3n_text glm helium ernie4_5 hunyuan_v1_dense ministral "
     "ministral3 youtu deepseek_v3 glm_moe_dsa mistral4 hrm_text"},
    {"num_transformer_layers", "openelm"},
    {"num_layers", "gpt_neo exaone"},
    {"n_layers", "mpt"},
};
constexpr TypeRow kSeq2SeqDecoders[] = {
    {"num_decoder_layers", "t5 mt5 longt5"},
    {"decoder_layers",
     "bart mbart marian whisper lite-whisper m2m_100 blenderbot blenderbot-small florence2_language speecht5 trocr"},
    {"decoder_num_hidden_layers", "moonshine"},
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
/// Types with states besides keys and values: the engine has names for them that are not repeated here.
constexpr std::string_view kHybrid =
    "lfm2 lfm2_moe lfm2_vl granitemoehybrid falcon_h1 nemotron_h qwen3_next qwen3_5 qwen3_5_moe qwen3_5_text "
    "qwen3_5_moe_text olmo_hybrid gemma4 gemma4_text deepseek_v4 zaya voxtral_realtime";

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

constexpr int64_t kMaxLayers = 10'000;

int64_t layers_of(JsonView config, std::string_view key) {
  return std::clamp(config.find(key).as_integer().value_or(0), int64_t{0}, kMaxLayers);
}

}  // namespace

std::vector<std::string> sessions(JsonView config) {
  std::string_view graphs = config.find("is_encoder_decoder").as_bool().value_or(false) ? kSeq2Seq : "model";
  for (JsonView name : config.find("architectures").items()) {
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
  if (has_word(kHybrid, type)) {
    cache.is_known = true;
    return cache;
  }
  if (const TypeRow* row = row_of(kNested, type)) {
    config = config.find(row->layers);
    type = config.find("model_type").as_string().value_or("");
    if (has_word(kHybrid, type)) {
      cache.is_known = true;
      return cache;
    }
  }
  auto add = [&](int64_t layers, std::initializer_list<std::string_view> roles) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      for (std::string_view role : roles) cache.names.insert(format("past_key_values.{}.{}", layer, role));
    }
    cache.is_known = true;
    cache.is_complete = layers < kMaxLayers;
  };
  if (const TypeRow* row = row_of(kSeq2SeqDecoders, type)) {
    add(layers_of(config, row->layers), {"decoder.key", "decoder.value", "encoder.key", "encoder.value"});
    // Which of these it is depends on flags of the model around it.
    if (is_vision_decoder) add(layers_of(config, row->layers), {"key", "value"});
  } else if (const TypeRow* decoder = row_of(kDecoders, type)) {
    bool is_fused = type == "gpt_bigcode" && config.find("multi_query").as_bool().value_or(false);
    if (is_fused)
      add(layers_of(config, decoder->layers), {"key_value"});
    else
      add(layers_of(config, decoder->layers), {"key", "value"});
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
