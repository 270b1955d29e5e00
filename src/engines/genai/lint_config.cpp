#include "engines/genai/lint_config.h"

#include <algorithm>

#include "base/text.h"

namespace argosy::engines::genai {
namespace {

struct TypeRow {
  ModelKind kind;
  std::string_view types;  // separated by spaces
};
constexpr TypeRow kTypesByKind[] = {
    {ModelKind::kText,
     "chatglm decoder ernie4_5 gemma gemma2 gemma3_text gemma3_vl_text gemma4_text gpt2 gptoss granite "
     "granitemoehybrid "
     "hunyuandensev1 internlm2 lfm2 lfm2_audio_text lfm2_moe lfm2_vl_text llama mistral mistral3_text nemotron olmo "
     "phi phi3 "
     "phi3small phimoe qwen2 qwen2_5_vl_text qwen3 qwen3_5_moe_text qwen3_5_text qwen3_vl_text smollm3"},
    {ModelKind::kVision,
     "fara gemma3 lfm2_vl mistral3 phi3v qwen2_5_vl qwen3_5 qwen3_5_moe qwen3_vl videochat_flash_qwen"},
    {ModelKind::kSpeech, "whisper"},
    {ModelKind::kMultimodal, "gemma4 gemma4_unified phi4mm"},
    {ModelKind::kOther, "decoder-pipeline lfm2_audio marian-ssru nemotron_speech parakeet_tdt streaming_enc_dec_asr"},
};

/// Keys that the engine reads, with the kinds of values: n(umber), s(tring), b(ool), o(bject), a(rray). Others make it
/// refuse the file, but for plain values at the top. tests/bundles/test_lint_engines.py tries each in the engine.
struct SectionRow {
  std::string_view path;
  std::string_view keys;
};
constexpr SectionRow kSections[] = {
    {"model",
     "audio_output:o audio_token_id:n blank_id:n boa_token_id:n bor_token_id:n bos_token_id:n bot_token_id:n "
     "chunk_samples:n context_length:n conv_context:n decoder:o decoder_start_token_id:n dflash2:o draft:o "
     "dspark:o embedding:o encoder:o eor_token_id:n eos_token_id:na eot_token_id:n fft_size:n hop_length:n "
     "image_token_id:n joiner:o left_context:n left_context_samples:n log_eps:n max_symbols_per_step:n "
     "moonshine:o mtp:o norm_eps:n num_mels:n pad_token_id:n pre_encode_cache_size:n preemph:n "
     "right_context_samples:n sample_rate:n sep_token_id:n speech:o subsampling_factor:n tdt_durations:a "
     "tokenizer_dir:s type:s vad:o video_token_id:n vision:o vision_start_token_id:n vocab_size:n win_length:n"},
    {"search",
     "audio_interleaved:b audio_temperature:n audio_top_k:n batch_size:n blank_penalty:n chunk_size:n "
     "diversity_penalty:n do_sample:b early_stopping:b length_penalty:n max_length:n min_length:n "
     "no_repeat_ngram_size:n num_beams:n num_return_sequences:n past_present_share_buffer:b random_seed:n "
     "repetition_penalty:n temperature:n top_k:n top_p:n"},
    {"engine", "dynamic_batching:o static_batching:o"},
    {"engine.dynamic_batching",
     "block_size:n dflash2_max_snapshots:n gpu_utilization_factor:n max_batch_size:n max_scheduled_tokens:n "
     "num_blocks:n prefix_caching:b"},
    {"speculative", "cooldown:b max_draft_tokens:n min_adaptive_k:n ngram_chained_lookup:b ngram_size:n"},
    {"model.decoder",
     "conv_cache_size:n filename:s head_size:n hidden_size:n inputs:o layer_types:a num_attention_heads:n "
     "num_hidden_layers:n num_key_value_heads:n outputs:o pipeline:oa run_options:o session_options:o "
     "shared_initializers:a sliding_window:o state_groups:a state_update_capacity:n"},
    {"model.decoder.inputs",
     "attention_mask:s attention_metadata:s block_table:s block_table_windowed:s cache_indirection:s "
     "cross_past_key_names:s cross_past_value_names:s cumulative_sequence_lengths:s current_sequence_length:s "
     "encoder_attention_mask:s encoder_hidden_states:s hidden_states:s input_ids:s inputs_embeds:s "
     "logits_indices:s lstm_cell_state:s lstm_hidden_state:s past_conv_names:s past_key_names:s "
     "past_key_scale_names:s past_key_values_length:s past_names:s past_recurrent_names:s "
     "past_sequence_length:s past_sequence_lengths:s past_value_names:s past_value_scale_names:s "
     "per_layer_inputs:s position_ids:s rnn_states_prev:s state_update_active:s state_update_capture_count:s "
     "targets:s targets_length:s total_sequence_length:s"},
    {"model.decoder.outputs",
     "hidden_states:s logits:s lstm_cell_state:s lstm_hidden_state:s output_cross_qk_names:s outputs:s "
     "outputs_length:s present_conv_names:s present_key_names:s present_key_scale_names:s present_names:s "
     "present_recurrent_names:s present_value_names:s present_value_scale_names:s rnn_states:s "
     "state_update_conv_value_names:s state_update_recurrent_capsule_names:s"},
    {"model.decoder.sliding_window",
     "alignment:s cache_slack:n layers:a pad_value:n slide_inputs:b slide_key_value_cache:b window_size:n"},
    {"model.encoder",
     "filename:s head_size:n hidden_size:n inputs:o num_attention_heads:n num_hidden_layers:n "
     "num_key_value_heads:n outputs:o run_options:o session_options:o"},
    {"model.encoder.inputs",
     "attention_mask:s audio_features:s cache_last_channel:s cache_last_channel_len:s cache_last_time:s "
     "input_ids:s input_lengths:s inputs_embeds:s lang_id:s position_ids:s"},
    {"model.encoder.outputs",
     "cache_last_channel_len_next:s cache_last_channel_next:s cache_last_time_next:s cross_present_key_names:s "
     "cross_present_value_names:s encoder_hidden_states:s encoder_outputs:s output_lengths:s"},
    {"model.vision",
     "adapter_filename:s config_filename:s filename:s inputs:o max_num_patches:n num_visual_tokens:n outputs:o "
     "patch_size:n pipeline:oa run_options:o session_options:o spatial_merge_size:n tokens_per_second:n "
     "window_size:n"},
    {"model.vision.inputs", "attention_mask:s image_grid_thw:s image_sizes:s pixel_position_ids:s pixel_values:s"},
    {"model.vision.outputs", "image_features:s"},
    {"model.speech",
     "adapter_filename:s config_filename:s filename:s inputs:o outputs:o run_options:o session_options:o"},
    {"model.speech.inputs", "attention_mask:s audio_embeds:s audio_lengths:s audio_projection_mode:s audio_sizes:s"},
    {"model.speech.outputs", "audio_features:s"},
    {"model.embedding", "filename:s inputs:o outputs:o run_options:o session_options:o"},
    {"model.embedding.inputs", "audio_features:s image_features:s input_ids:s"},
    {"model.embedding.outputs", "inputs_embeds:s per_layer_inputs:s"},
    {"model.joiner", "filename:s inputs:o outputs:o run_options:o session_options:o"},
};
/// Objects at the top.
constexpr std::string_view kRoots[] = {"engine", "model", "search", "speculative"};

std::string_view next_word(std::string_view& words) {
  size_t end = std::min(words.find(' '), words.size());
  std::string_view word = words.substr(0, end);
  words.remove_prefix(std::min(end + 1, words.size()));
  return word;
}

/// The letters of a key; nullopt if the section does not have it.
std::optional<std::string_view> kinds_of(std::string_view keys, std::string_view wanted) {
  while (!keys.empty()) {
    std::string_view word = next_word(keys);
    size_t colon = word.rfind(':');
    if (word.substr(0, colon) == wanted) return word.substr(colon + 1);
  }
  return std::nullopt;
}

char kind_letter(JsonView value) {
  switch (value.kind()) {
    case JsonKind::kBool: return 'b';
    case JsonKind::kString: return 's';
    case JsonKind::kArray: return 'a';
    case JsonKind::kObject: return 'o';
    case JsonKind::kInteger:
    case JsonKind::kUnsigned:
    case JsonKind::kDouble: return 'n';
    case JsonKind::kNull: break;
  }
  return '0';
}

std::string_view kind_name(char letter) {
  switch (letter) {
    case 'n': return "a number";
    case 's': return "a text";
    case 'b': return "true or false";
    case 'a': return "a list";
    case 'o': return "an object";
    default: return "null";
  }
}

void look_into(const SectionRow& section, JsonView object, std::vector<std::pair<std::string, std::string>>& refused) {
  for (auto [key, value] : object.members()) {
    std::string path = format("{}.{}", section.path, key);
    auto kinds = kinds_of(section.keys, key);
    char kind = kind_letter(value);
    if (!kinds)
      refused.emplace_back(path, "is not a key that the engine knows");
    else if (kinds->find(kind) == std::string_view::npos)
      refused.emplace_back(path, format("is {}, the engine reads {}", kind_name(kind), kind_name(kinds->front())));
  }
}

}  // namespace

std::optional<ModelKind> model_kind(std::string_view type) {
  for (const TypeRow& row : kTypesByKind) {
    std::string_view words = row.types;
    while (!words.empty()) {
      if (next_word(words) == type) return row.kind;
    }
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> refused_keys(JsonView config) {
  std::vector<std::pair<std::string, std::string>> refused;
  for (auto [key, value] : config.members()) {
    if (value.is_object() && std::find(std::begin(kRoots), std::end(kRoots), key) == std::end(kRoots))
      refused.emplace_back(key, "is not a section that the engine knows");
  }
  for (const SectionRow& section : kSections) {
    JsonView object = config;
    std::string_view path = section.path;
    while (!path.empty() && object.is_valid()) {
      size_t end = std::min(path.find('.'), path.size());
      object = object.find(path.substr(0, end));
      path.remove_prefix(std::min(end + 1, path.size()));
    }
    if (object.is_object()) look_into(section, object, refused);
    constexpr size_t kMany = 20;
    if (refused.size() > kMany) {
      refused.resize(kMany);
      break;
    }
  }
  return refused;
}

}  // namespace argosy::engines::genai
