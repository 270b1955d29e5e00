#include "engines/genai/config.h"

#include "io/json.h"

namespace argosy::engines::genai {
namespace {

constexpr int64_t kUsualContext = 4096;
/// Tokenizers without a limit state an absurdly large one.
constexpr int64_t kLargestContext = int64_t{1} << 30;

void write_names(JsonWriter& json, std::string_view key,
                 const std::vector<std::pair<std::string, std::string>>& names) {
  json.key(key).begin_object();
  for (const auto& [role, name] : names) json.key(role).value(name);
  json.end_object();
}

/// The decoder's hold for all graphs that have none of their own; without a provider the engine takes the CPU.
void write_session_options(JsonWriter& json, const Section& section, const Device* device) {
  bool has_provider = device != nullptr && !device->provider.empty();
  if (has_provider && section.name != "decoder") return;
  json.key("session_options").begin_object();
  json.key("log_id").value("onnxruntime-genai");
  json.key("provider_options").begin_array();
  if (has_provider) {
    json.begin_object().key(device->provider).begin_object();
    for (const auto& [key, value] : device->provider_options) json.key(key).value(value);
    json.end_object().end_object();
  }
  json.end_array().end_object();
}

void write_section(JsonWriter& json, const Section& section, const Device* device) {
  json.key(section.name).begin_object();
  if (!section.file.empty()) {
    write_session_options(json, section, device);
    json.key("filename").value(section.file);
  }
  for (const auto& [key, text] : section.texts) json.key(key).value(text);
  for (const auto& [key, number] : section.numbers) json.key(key).value(number);
  if (!section.layer_types.empty()) {
    json.key("layer_types").begin_array();
    for (const std::string& type : section.layer_types) json.value(type);
    json.end_array();
  }
  if (!section.inputs.empty()) write_names(json, "inputs", section.inputs);
  if (!section.outputs.empty()) write_names(json, "outputs", section.outputs);
  json.end_object();
}

/// The engine takes 0 for a missing id, which is some other token: so every known id is written.
void write_tokens(JsonWriter& json, const Config& config, const SourceModel& model) {
  std::vector<int64_t> bos = model.token_ids("bos_token_id"), eos = model.token_ids("eos_token_id");
  std::vector<int64_t> pad = model.token_ids("pad_token_id");
  if (pad.empty()) pad = eos;  // as `generate` does
  if (!bos.empty()) json.key("bos_token_id").value(bos[0]);
  if (!eos.empty()) {
    json.key("eos_token_id").begin_array();
    for (int64_t id : eos) json.value(id);
    json.end_array();
  }
  if (!pad.empty()) json.key("pad_token_id").value(pad[0]);
  for (const auto& [key, id] : config.tokens) json.key(key).value(id);
}

void write_search(JsonWriter& json, const Config& config, const SourceModel& model) {
  JsonView settings = model.generation_config ? model.generation_config->root() : JsonView();
  auto number = [&](std::string_view key, double otherwise) {
    json.key(key).value(settings.is_valid() ? settings.find(key).as_double().value_or(otherwise) : otherwise);
  };
  auto integer = [&](std::string_view key, int64_t otherwise) {
    json.key(key).value(settings.is_valid() ? settings.find(key).as_integer().value_or(otherwise) : otherwise);
  };
  json.key("search").begin_object();
  json.key("do_sample").value(settings.is_valid() && settings.find("do_sample").as_bool().value_or(false));
  json.key("early_stopping").value(true);
  number("length_penalty", 1.0);
  json.key("max_length").value(config.context_length);
  json.key("min_length").value(int64_t{0});
  integer("no_repeat_ngram_size", 0);
  json.key("num_beams").value(int64_t{1});
  json.key("num_return_sequences").value(int64_t{1});
  // Caches grow by concatenation; a shared buffer is for graphs with attention ops of the engine's own.
  json.key("past_present_share_buffer").value(false);
  number("repetition_penalty", 1.0);
  number("temperature", 1.0);
  integer("top_k", 50);
  number("top_p", 1.0);
  json.end_object();
}

}  // namespace

int64_t context_length(const SourceModel& model) {
  auto length = model.text_number({"max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length",
                                   "max_seq_len", "seq_length", "max_target_positions"});
  if (!length && model.tokenizer_config) {
    length = model.tokenizer_config->root().find("model_max_length").as_integer();
  }
  if (!length || *length <= 0 || *length >= kLargestContext) length = kUsualContext;
  return *model.within_limits(length);
}

std::string config_text(const Config& config, const SourceModel& model) {
  JsonWriter json(JsonWriter::Layout::kIndented);
  json.begin_object();
  json.key("model").begin_object();
  json.key("type").value(config.type);
  write_tokens(json, config, model);
  json.key("context_length").value(config.context_length);
  json.key("vocab_size").value(config.vocab_size);
  for (const Section& section : config.sections) write_section(json, section, model.device);
  json.end_object();
  write_search(json, config, model);
  json.end_object();
  return json.take() + "\n";
}

}  // namespace argosy::engines::genai
