// What ONNX Runtime GenAI 0.18 wants of a bundle.

#include <algorithm>

#include "engines/genai/lint_config.h"
#include "engines/lint_cache.h"
#include "engines/lint_rule.h"
#include "engines/lint_tokens.h"
#include "io/names.h"

namespace argosy::engines {
namespace {

using genai::model_kind;
using genai::ModelKind;

constexpr std::string_view kConfig = "genai_config.json";

JsonView model_of(const LintedBundle& bundle) { return bundle.json(kConfig).find("model"); }

std::string_view text_of(JsonView value, std::string_view otherwise = "") {
  return value.as_string().value_or(otherwise);
}

std::optional<ModelKind> kind_of(const LintedBundle& bundle) {
  return model_kind(text_of(model_of(bundle).find("type")));
}

/// The graph of a section such as "decoder"; null if it has none that can be read.
const LintedGraph* graph_of(const LintedBundle& bundle, std::string_view section) {
  const LintedGraph* graph = bundle.graph(text_of(model_of(bundle).find(section).find("filename")));
  return graph != nullptr && graph->model ? graph : nullptr;
}

void check_config(const LintedBundle& bundle, const FindingSink& found) {
  if (bundle.file(kConfig) == nullptr) found.add("", "there is no genai_config.json");
}

void check_type(const LintedBundle& bundle, const FindingSink& found) {
  JsonView model = model_of(bundle);
  if (!bundle.json(kConfig).is_object()) return;
  std::string_view type = text_of(model.find("type"));
  if (type.empty())
    found.add(kConfig, "model.type is missing");
  else if (!model_kind(type))
    found.add(kConfig, format("model.type {} is not one that the engine knows", quoted(type)));
}

void check_keys(const LintedBundle& bundle, const FindingSink& found) {
  for (const auto& [path, problem] : genai::refused_keys(bundle.json(kConfig)))
    found.add(kConfig, format("{} {}", path, problem));
}

void check_context(const LintedBundle& bundle, const FindingSink& found) {
  JsonView model = model_of(bundle);
  if (!model.is_object()) return;
  auto length = model.find("context_length").as_integer();
  if (!length || *length <= 0) found.add(kConfig, "model.context_length is missing or not above 0");
  auto longest = bundle.json(kConfig).find("search").find("max_length").as_integer();
  if (length && longest && *longest > *length && *length > 0)
    found.add(kConfig, format("search.max_length is {}, model.context_length {}", *longest, *length));
}

void check_vocabulary(const LintedBundle& bundle, const FindingSink& found) {
  JsonView model = model_of(bundle);
  if (!model.is_object() || kind_of(bundle) == ModelKind::kOther) return;
  auto size = model.find("vocab_size").as_integer();
  if (!size || *size <= 0) {
    found.add(kConfig, "model.vocab_size is missing or not above 0");
    return;
  }
  const LintedGraph* decoder = graph_of(bundle, "decoder");
  if (decoder == nullptr) return;
  const OnnxValue* logits = decoder->output(text_of(model.find("decoder").find("outputs").find("logits"), "logits"));
  if (logits == nullptr || logits->shape.empty()) return;
  auto last = logits->shape.back().value;
  if (last && *last != *size)
    found.add(kConfig, format("model.vocab_size is {}, the logits of {} have {}", *size, quoted(decoder->file), *last));
}

/// Calls `visit(path, filename)` for the graphs that the configuration names.
template <class Visit>
void each_filename(JsonView model, Visit visit) {
  for (std::string_view section : {"decoder", "encoder", "vision", "speech", "embedding", "joiner", "vad", "mtp"}) {
    JsonView part = model.find(section);
    if (JsonView name = part.find("filename"); name.is_valid())
      visit(format("model.{}.filename", section), text_of(name));
    for (JsonView stages : part.find("pipeline").items()) {
      for (auto [stage, settings] : stages.members())
        visit(format("model.{}.pipeline.{}.filename", section, stage), text_of(settings.find("filename")));
    }
  }
}

void check_files(const LintedBundle& bundle, const FindingSink& found) {
  JsonView model = model_of(bundle);
  if (!model.is_object()) return;
  each_filename(model, [&](const std::string& path, std::string_view file) {
    if (file.empty())
      found.add(kConfig, format("{} is empty", path));
    else if (!is_plain_relative_path(file))
      found.add(kConfig, format("{} is {}, which is not a plain path inside the folder", path, quoted(file)));
    else if (!bundle.has(file))
      found.add(kConfig, format("{} is {}, which is not there", path, quoted(file)));
  });
}

void check_parts(const LintedBundle& bundle, const FindingSink& found) {
  std::optional<ModelKind> kind = kind_of(bundle);
  JsonView model = model_of(bundle);
  if (!kind || *kind == ModelKind::kOther) return;
  std::vector<std::string_view> needed = {"decoder"};
  if (*kind == ModelKind::kVision || *kind == ModelKind::kMultimodal) needed = {"vision", "embedding", "decoder"};
  if (*kind == ModelKind::kSpeech) needed = {"encoder", "decoder"};
  // Stages of a pipeline take the place of the one graph.
  std::vector<std::string> lacking;
  for (std::string_view section : needed) {
    JsonView part = model.find(section);
    if (!part.find("filename").is_valid() && part.find("pipeline").size() == 0) lacking.emplace_back(section);
  }
  if (*kind == ModelKind::kMultimodal && !model.find("speech").find("filename").is_valid() &&
      text_of(model.find("speech").find("config_filename"), "default") != "")
    lacking.emplace_back("speech");
  if (!lacking.empty())
    found.add(kConfig,
              format("model.type {} needs graphs for {}", quoted(text_of(model.find("type"))), some_of(lacking)));
}

void check_processor(const LintedBundle& bundle, const FindingSink& found) {
  std::optional<ModelKind> kind = kind_of(bundle);
  auto look = [&](std::string_view section, std::string_view otherwise) {
    std::string_view file = text_of(model_of(bundle).find(section).find("config_filename"), otherwise);
    if (!file.empty() && !bundle.has(file))
      found.add(
          "", format("there is no {}, by which the engine prepares the inputs of its {} graph", quoted(file), section));
  };
  if (kind == ModelKind::kVision || kind == ModelKind::kMultimodal) look("vision", "processor_config.json");
  if (kind == ModelKind::kSpeech || (kind == ModelKind::kMultimodal && model_of(bundle).find("speech").is_object()))
    look("speech", "audio_processor_config.json");
}

struct Name {
  std::string_view role, usual;
};
// Inputs and outputs of the decoder, and their names if the configuration does not give them.
constexpr Name kInputs[] = {
    {"input_ids", "input_ids"},
    {"inputs_embeds", "inputs_embeds"},
    {"attention_mask", "attention_mask"},
    {"position_ids", "position_ids"},
    {"past_key_names", "past_key_values.%d.key"},
    {"past_value_names", "past_key_values.%d.value"},
    {"past_names", ""},
    {"past_conv_names", "past_conv.%d"},
    {"past_recurrent_names", "past_recurrent.%d"},
    {"past_key_scale_names", ""},
    {"past_value_scale_names", ""},
    {"cross_past_key_names", ""},
    {"cross_past_value_names", ""},
    {"past_key_values_length", "past_key_values_length"},
    {"past_sequence_length", "past_sequence_length"},
    {"current_sequence_length", "current_sequence_length"},
    {"total_sequence_length", "total_sequence_length"},
    {"cache_indirection", "cache_indirection"},
    {"encoder_hidden_states", "encoder_hidden_states"},
    {"encoder_attention_mask", "encoder_attention_mask"},
    {"hidden_states", ""},
    {"per_layer_inputs", ""},
};

/// Whether a name is one of a template such as "past_key_values.%d.key", and its number.
std::optional<int64_t> number_in(std::string_view name, std::string_view pattern) {
  size_t mark = pattern.find("%d");
  if (mark == std::string_view::npos) return std::nullopt;
  std::string_view before = pattern.substr(0, mark), after = pattern.substr(mark + 2);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  name = name.substr(before.size(), name.size() - before.size() - after.size());
  if (name.size() > 6 || name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return std::stoll(std::string(name));
}

std::string with_number(std::string_view pattern, int64_t number) {
  size_t mark = pattern.find("%d");
  if (mark == std::string_view::npos) return std::string(pattern);
  return format("{}{}{}", pattern.substr(0, mark), number, pattern.substr(mark + 2));
}

std::string_view input_name(JsonView decoder, std::string_view role) {
  for (const Name& name : kInputs) {
    if (name.role == role) return text_of(decoder.find("inputs").find(role), name.usual);
  }
  return "";
}

bool is_fed(JsonView decoder, std::string_view name) {
  for (const Name& each : kInputs) {
    std::string_view pattern = text_of(decoder.find("inputs").find(each.role), each.usual);
    if (pattern == name || number_in(name, pattern)) return true;
  }
  // States of recurrent layers are called like keys, but for the last part.
  std::string_view keys = input_name(decoder, "past_key_names");
  std::string_view before = keys.substr(0, keys.rfind('.') + 1);
  for (std::string_view state : {"conv_state", "recurrent_state"}) {
    if (!before.empty() && number_in(name, format("{}{}", before, state))) return true;
  }
  return false;
}

void check_inputs(const LintedBundle& bundle, const FindingSink& found) {
  JsonView decoder = model_of(bundle).find("decoder");
  const LintedGraph* graph = graph_of(bundle, "decoder");
  std::optional<ModelKind> kind = kind_of(bundle);
  if (graph == nullptr || !kind || *kind == ModelKind::kOther) return;
  bool takes_embeddings = *kind == ModelKind::kVision || *kind == ModelKind::kMultimodal;
  std::string_view tokens = input_name(decoder, takes_embeddings ? "inputs_embeds" : "input_ids");
  if (graph->input(tokens) == nullptr) found.add(graph->file, format("the decoder has no input {}", quoted(tokens)));
  std::vector<std::string> unknown;
  for (const OnnxValue& input : graph->model->inputs) {
    if (!is_fed(decoder, input.name) && !graph->defaults.contains(input.name)) unknown.push_back(input.name);
  }
  if (!unknown.empty()) found.add(graph->file, format("the engine does not feed {}", some_of(unknown)));
}

void check_outputs(const LintedBundle& bundle, const FindingSink& found) {
  JsonView decoder = model_of(bundle).find("decoder");
  const LintedGraph* graph = graph_of(bundle, "decoder");
  if (graph == nullptr || kind_of(bundle) == ModelKind::kOther) return;
  std::vector<std::string> lacking;
  std::string_view logits = text_of(decoder.find("outputs").find("logits"), "logits");
  if (graph->output(logits) == nullptr) lacking.emplace_back(logits);
  struct Pair {
    std::string_view past, present, usual;
  };
  for (const Pair& pair : {Pair{"past_key_names", "present_key_names", "present.%d.key"},
                           Pair{"past_value_names", "present_value_names", "present.%d.value"}}) {
    std::string_view present = text_of(decoder.find("outputs").find(pair.present), pair.usual);
    for (const OnnxValue& input : graph->model->inputs) {
      auto layer = number_in(input.name, input_name(decoder, pair.past));
      if (layer && graph->output(with_number(present, *layer)) == nullptr)
        lacking.push_back(with_number(present, *layer));
    }
  }
  if (!lacking.empty()) found.add(graph->file, format("the engine asks for outputs {}", some_of(lacking)));
}

void check_mask(const LintedBundle& bundle, const FindingSink& found) {
  JsonView decoder = model_of(bundle).find("decoder");
  const LintedGraph* graph = graph_of(bundle, "decoder");
  if (graph == nullptr) return;
  const OnnxValue* mask = graph->input(input_name(decoder, "attention_mask"));
  const OnnxValue* positions = graph->input(input_name(decoder, "position_ids"));
  for (const OnnxValue* value : {mask, positions}) {
    if (value != nullptr && value->type != "i64" && value->type != "i32")
      found.add(graph->file, format("{} is {}, the engine feeds i64 or i32", quoted(value->name), value->type));
  }
  if (mask != nullptr && positions != nullptr && mask->type != positions->type)
    found.add(graph->file, format("{} is {} and {} is {}: they must be alike", quoted(mask->name), mask->type,
                                  quoted(positions->name), positions->type));
}

void check_share_buffer(const LintedBundle& bundle, const FindingSink& found) {
  const LintedGraph* graph = graph_of(bundle, "decoder");
  bool is_shared = bundle.json(kConfig).find("search").find("past_present_share_buffer").as_bool().value_or(false);
  if (graph == nullptr || !is_shared) return;
  for (std::string_view op : {"GroupQueryAttention", "MultiHeadAttention", "DecoderMaskedMultiHeadAttention",
                              "PagedAttention", "SparseAttention"}) {
    if (graph->count_of("com.microsoft", op) > 0) return;
  }
  if (graph->count_of("", "TensorScatter") > 0) return;
  found.add(kConfig, "search.past_present_share_buffer is true, but the decoder's caches grow");
}

void check_cache(const LintedBundle& bundle, const FindingSink& found) {
  JsonView decoder = model_of(bundle).find("decoder");
  const LintedGraph* graph = graph_of(bundle, "decoder");
  if (graph == nullptr) return;
  auto heads = decoder.find("num_key_value_heads").as_integer(), size = decoder.find("head_size").as_integer();
  auto layers = decoder.find("num_hidden_layers").as_integer();
  int64_t count = 0, alike = 0;
  const OnnxValue* odd = nullptr;
  for (const OnnxValue& input : graph->model->inputs) {
    if (!number_in(input.name, input_name(decoder, "past_key_names"))) continue;
    ++count;
    if (input.shape.size() != 4) continue;
    bool is_same = (!heads || input.shape[1].value.value_or(*heads) == *heads) &&
                   (!size || input.shape[3].value.value_or(*size) == *size);
    alike += is_same ? 1 : 0;
    if (!is_same && odd == nullptr) odd = &input;
  }
  // Layers may differ among each other; then the configuration has the numbers of some of them.
  if (odd != nullptr && alike == 0)
    found.add(kConfig, format("model.decoder has {} heads of {}, but {} is {}", heads.value_or(0), size.value_or(0),
                              quoted(odd->name), shape_text(*odd)));
  if (layers && count > *layers)
    found.add(kConfig, format("model.decoder.num_hidden_layers is {}, the decoder has caches for {}", *layers, count));
}

void check_eos(const LintedBundle& bundle, const FindingSink& found) {
  JsonView model = model_of(bundle);
  if (!model.is_object() || kind_of(bundle) == ModelKind::kOther) return;
  std::vector<int64_t> ids = integers(model.find("eos_token_id"));
  if (ids.empty()) {
    // A model without an end token then stops at the pad token, which it does not generate.
    if (has_no_end_token(bundle) && model.find("pad_token_id").as_integer()) return;
    found.add(kConfig, "model.eos_token_id is missing; the engine then stops at the pad token, 0 if there is none");
    return;
  }
  std::vector<int64_t> lacking;
  for (int64_t id : integers(bundle.json("generation_config.json").find("eos_token_id"))) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) lacking.push_back(id);
  }
  if (!lacking.empty())
    found.add(kConfig, format("model.eos_token_id is {}, generation_config.json also ends at {}", ids_text(ids),
                              ids_text(lacking)));
}

void check_tokenizer(const LintedBundle& bundle, const FindingSink& found) {
  if (!model_of(bundle).is_object()) return;
  std::string_view folder = text_of(model_of(bundle).find("tokenizer_dir"));
  if (!folder.empty() && !is_plain_relative_path(folder)) {
    found.add(kConfig,
              format("model.tokenizer_dir is {}, which is not a plain path inside the folder", quoted(folder)));
    return;
  }
  for (std::string_view name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::string file = folder.empty() ? std::string(name) : format("{}/{}", folder, name);
    if (!bundle.has(file)) found.add("", format("there is no {}", file));
  }
}

constexpr LintRule kGenaiRules[] = {
    {"genai-config-missing", kLintError, "no genai_config.json (optimum-onnx#33)", "export with --for genai",
     check_config},
    {"genai-type-unknown", kLintError, "a model.type that the engine does not know",
     "write \"decoder\" for a text decoder of another architecture", check_type},
    {"genai-key-refused", kLintError, "a key or a value's type in genai_config.json that the engine refuses to read",
     "remove the key, or write what the engine expects; leave out what is null", check_keys},
    {"genai-context-length", kLintError, "a context length that is missing, or a search longer than it",
     "write max_position_embeddings of the model as model.context_length", check_context},
    {"genai-vocab-size", kLintError, "a vocab_size that is missing, or not that of the logits",
     "write the last dim of the logits as model.vocab_size", check_vocabulary},
    {"genai-file-missing", kLintError,
     "a graph that genai_config.json names and that is not there, or outside the folder",
     "copy the graph into the folder, or correct the name", check_files},
    {"genai-part-missing", kLintError,
     "a multimodal model without its vision, embedding, speech or encoder graph (onnxruntime-genai#1655)",
     "export all parts, or the text decoder alone with a text type", check_parts},
    {"genai-processor-missing", kLintError,
     "a multimodal model without the processor's configuration (onnxruntime#21282)",
     "export with --for genai, which writes it", check_processor},
    {"genai-input", kLintError, "a decoder without the input of tokens, or with one that the engine does not feed",
     "rename the input, or map it in model.decoder.inputs", check_inputs},
    {"genai-output", kLintError, "a decoder without an output that the engine asks for",
     "rename the output, or map it in model.decoder.outputs", check_outputs},
    {"genai-mask-type", kLintError, "attention_mask and position_ids of types that the engine cannot feed",
     "export again with i64 for both", check_mask},
    {"genai-share-buffer", kLintError, "a shared cache buffer with a graph that concatenates its cache",
     "write false as search.past_present_share_buffer", check_share_buffer},
    {"genai-cache-shape", kLintWarning, "heads, head size or layers that differ from the decoder's cache",
     "write the dims of past_key_values.0.key: older engines take them from here", check_cache},
    {"genai-eos", kLintError, "an end token that is missing, or of generation_config.json and not in genai_config.json",
     "copy eos_token_id of generation_config.json", check_eos},
    {"genai-tokenizer-missing", kLintError,
     "no tokenizer.json or tokenizer_config.json where the engine looks for them",
     "copy both from the model; tokenizer.json may have to be made from a slow tokenizer", check_tokenizer},
    {"genai-tokenizer-class", kLintWarning,
     "a class of tokenizers that engines of early 2026 refuse (onnxruntime-genai#1987)",
     "write PreTrainedTokenizerFast as tokenizer_class", check_tokenizer_class},
};

}  // namespace

std::span<const LintRule> lint_genai_rules() { return kGenaiRules; }

}  // namespace argosy::engines
