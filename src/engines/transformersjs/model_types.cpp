#include "engines/transformersjs/model_types.h"

#include <algorithm>
#include <iterator>

namespace argosy::engines::transformersjs {
namespace {

struct Row {
  std::string_view model_type, layers;
};

constexpr Row kDecoders[] = {
    {"afmoe", "num_hidden_layers"},
    {"apertus", "num_hidden_layers"},
    {"arcee", "num_hidden_layers"},
    {"bloom", "n_layer"},
    {"codegen", "n_layer"},
    {"cohere", "num_hidden_layers"},
    {"cohere2", "num_hidden_layers"},
    {"deepseek_v3", "num_hidden_layers"},
    {"ernie4_5", "num_hidden_layers"},
    {"exaone", "num_layers"},
    {"falcon", "num_hidden_layers"},
    {"gemma", "num_hidden_layers"},
    {"gemma2", "num_hidden_layers"},
    {"gemma3_text", "num_hidden_layers"},
    {"glm", "num_hidden_layers"},
    {"gpt2", "n_layer"},
    {"gpt_bigcode", "n_layer"},
    {"gpt_neo", "num_layers"},
    {"gpt_neox", "num_hidden_layers"},
    {"gpt_oss", "num_hidden_layers"},
    {"gptj", "n_layer"},
    {"granite", "num_hidden_layers"},
    {"helium", "num_hidden_layers"},
    {"hrm_text", "num_hidden_layers"},
    {"hunyuan_v1_dense", "num_hidden_layers"},
    {"jais", "n_layer"},
    {"llama", "num_hidden_layers"},
    {"llama4_text", "num_hidden_layers"},
    {"ministral", "num_hidden_layers"},
    {"ministral3", "num_hidden_layers"},
    {"mistral", "num_hidden_layers"},
    {"mistral4", "num_hidden_layers"},
    {"mobilellm", "num_hidden_layers"},
    {"modernbert-decoder", "num_hidden_layers"},
    {"mpt", "n_layers"},
    {"nanochat", "num_hidden_layers"},
    {"olmo", "num_hidden_layers"},
    {"olmo2", "num_hidden_layers"},
    {"olmo3", "num_hidden_layers"},
    {"openelm", "num_transformer_layers"},
    {"opt", "num_hidden_layers"},
    {"phi", "num_hidden_layers"},
    {"phi3", "num_hidden_layers"},
    {"qwen2", "num_hidden_layers"},
    {"qwen2_moe", "num_hidden_layers"},
    {"qwen3", "num_hidden_layers"},
    {"qwen3_moe", "num_hidden_layers"},
    {"smollm3", "num_hidden_layers"},
    {"solar_open", "num_hidden_layers"},
    {"stablelm", "num_hidden_layers"},
    {"starcoder2", "num_hidden_layers"},
    {"vaultgemma", "num_hidden_layers"},
    {"youtu", "num_hidden_layers"},
};

constexpr Row kSeq2SeqTypes[] = {
    {"bart", "decoder_layers"},
    {"blenderbot", "decoder_layers"},
    {"blenderbot-small", "decoder_layers"},
    {"longt5", "num_decoder_layers"},
    {"m2m_100", "decoder_layers"},
    {"marian", "decoder_layers"},
    {"mbart", "decoder_layers"},
    {"moonshine", "decoder_num_hidden_layers"},
    {"mt5", "num_decoder_layers"},
    {"t5", "num_decoder_layers"},
    {"whisper", "decoder_layers"},
};

constexpr Row kVisionDecoders[] = {
    {"bart", "decoder_layers"},
    {"mbart", "decoder_layers"},
    {"trocr", "decoder_layers"},
};

constexpr HybridType kHybrids[] = {
    {"falcon_h1", "ssm"},
    {"granitemoehybrid", "ssm"},
    {"lfm2", ""},
    {"lfm2_moe", ""},
    {"nemotron_h", "ssm"},
    {"qwen3_5_moe_text", "recurrent"},
    {"qwen3_5_text", "recurrent"},
    {"qwen3_next", "recurrent"},
};

constexpr std::string_view kImageTextTypes[] = {
    "gemma3",   "glm_ocr",   "idefics3",   "lfm2_vl",  "lighton_ocr", "llava",        "llava_onevision",
    "mistral3", "paligemma", "qwen2_5_vl", "qwen2_vl", "qwen3_vl",    "qwen3_vl_moe", "smolvlm",
};
constexpr std::string_view kAudioTextTypes[] = {"granite_speech", "ultravox", "voxtral"};
constexpr std::string_view kImagePositions[] = {"glm_ocr", "qwen2_5_vl", "qwen2_vl", "qwen3_vl", "qwen3_vl_moe"};

template <size_t N>
std::optional<std::string_view> layers_key(const Row (&rows)[N], std::string_view model_type) {
  const Row* found = std::ranges::find(rows, model_type, &Row::model_type);
  if (found == std::end(rows)) return std::nullopt;
  return found->layers;
}

template <size_t N>
bool has(const std::string_view (&names)[N], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace

std::optional<std::string_view> decoder_layers_key(std::string_view type) { return layers_key(kDecoders, type); }
std::optional<std::string_view> seq2seq_layers_key(std::string_view type) { return layers_key(kSeq2SeqTypes, type); }
std::optional<std::string_view> vision_decoder_layers_key(std::string_view type) {
  return layers_key(kVisionDecoders, type);
}

const HybridType* hybrid_type(std::string_view type) {
  const HybridType* found = std::ranges::find(kHybrids, type, &HybridType::model_type);
  return found == std::end(kHybrids) ? nullptr : found;
}

bool is_image_text_type(std::string_view type) { return has(kImageTextTypes, type); }
bool is_audio_text_type(std::string_view type) { return has(kAudioTextTypes, type); }
bool has_image_positions(std::string_view type) { return has(kImagePositions, type); }

}  // namespace argosy::engines::transformersjs
