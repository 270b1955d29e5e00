// What optimum's ORTModelFor… classes (optimum-onnx 0.1) want of a bundle.

#include <algorithm>
#include <set>

#include "engines/lint_cache.h"
#include "engines/lint_rule.h"
#include "engines/lint_tokens.h"

namespace argosy::engines {
namespace {

bool is_encoder_decoder(const LintedBundle& bundle) {
  return bundle.config().find("is_encoder_decoder").as_bool().value_or(false) ||
         bundle.model_type() == "vision-encoder-decoder";
}

/// Whether a graph's name, without folder and extension, has all of `parts` in order and none of the others.
bool is_named(const LintedGraph& graph, std::initializer_list<std::string_view> parts,
              std::initializer_list<std::string_view> not_parts = {}) {
  std::string_view name = graph.stem();
  for (std::string_view part : not_parts) {
    if (name.find(part) != std::string_view::npos) return false;
  }
  for (std::string_view part : parts) {
    size_t at = name.find(part);
    if (at == std::string_view::npos) return false;
    name.remove_prefix(at + part.size());
  }
  return true;
}

bool any_named(const LintedBundle& bundle, std::initializer_list<std::string_view> parts,
               std::initializer_list<std::string_view> not_parts = {}) {
  return std::any_of(bundle.graphs().begin(), bundle.graphs().end(),
                     [&](const LintedGraph& graph) { return is_named(graph, parts, not_parts); });
}

void check_config(const LintedBundle& bundle, const FindingSink& found) {
  if (bundle.file("config.json") == nullptr)
    found.add("", "there is no config.json");
  else if (bundle.config().is_object() && bundle.model_type().empty())
    found.add("config.json", "it has no model_type");
}

void check_files(const LintedBundle& bundle, const FindingSink& found) {
  if (!is_encoder_decoder(bundle) || bundle.graphs().empty()) return;
  if (!any_named(bundle, {"encoder"})) found.add("", "there is no encoder_model.onnx");
  if (!any_named(bundle, {"decoder", "merged"}) && !any_named(bundle, {"decoder"}, {"with_past", "merged"}))
    found.add("", "there is neither decoder_model_merged.onnx nor decoder_model.onnx");
}

void check_past(const LintedBundle& bundle, const FindingSink& found) {
  if (!is_encoder_decoder(bundle) || any_named(bundle, {"decoder", "merged"})) return;
  if (any_named(bundle, {"decoder"}, {"with_past", "merged"}) && !any_named(bundle, {"decoder", "with_past"}))
    found.add("", "there is decoder_model.onnx without decoder_with_past_model.onnx");
}

void check_name(const LintedBundle& bundle, const FindingSink& found) {
  if (is_encoder_decoder(bundle) || bundle.graphs().empty()) return;
  bool is_usual = any_named(bundle, {"decoder", "merged"}) || any_named(bundle, {"decoder", "with_past"}) ||
                  std::any_of(bundle.graphs().begin(), bundle.graphs().end(),
                              [](const LintedGraph& graph) { return graph.stem() == "model"; });
  if (is_usual) return;
  std::vector<std::string> names;
  for (const LintedGraph& graph : bundle.graphs()) names.push_back(graph.file);
  found.add("", format("there is no model.onnx among {}", some_of(names)));
}

/// With each graph that it opens, the engine downloads a file of its name and "_data"; graphs may share one.
void check_data_name(const LintedBundle& bundle, const FindingSink& found) {
  std::set<std::string> downloaded;
  for (const LintedGraph& graph : bundle.graphs()) downloaded.insert(format("{}_data", graph.file));
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model) continue;
    std::vector<std::string> others;
    for (const OnnxExternalFile& external : graph.model->external_files) {
      std::string file =
          graph.folder().empty() ? external.location : format("{}/{}", graph.folder(), external.location);
      if (!downloaded.contains(file)) others.push_back(external.location);
    }
    if (!others.empty())
      found.add(graph.file, format("its data is called {}, downloaded from the Hub is \"{}.onnx_data\"",
                                   some_of(others), graph.stem()));
  }
}

bool is_decoder(const LintedBundle& bundle, const LintedGraph& graph) {
  if (!graph.model) return false;
  return is_encoder_decoder(bundle) ? is_named(graph, {"decoder"}) : !cache_inputs(graph).empty();
}

constexpr std::string_view kFedInputs[] = {"input_ids", "attention_mask", "position_ids", "use_cache_branch"};
constexpr std::string_view kSeq2SeqInputs[] = {
    "input_ids",        "attention_mask", "encoder_hidden_states", "encoder_attention_mask",
    "use_cache_branch", "cache_position"};

void check_inputs(const LintedBundle& bundle, const FindingSink& found) {
  std::span<const std::string_view> fed = kFedInputs;
  if (is_encoder_decoder(bundle)) fed = kSeq2SeqInputs;
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!is_decoder(bundle, graph)) continue;
    std::vector<std::string> unknown;
    for (const OnnxValue& input : graph.model->inputs) {
      bool is_cache = input.name.find(".key") != std::string::npos || input.name.find(".value") != std::string::npos;
      if (!is_cache && std::find(fed.begin(), fed.end(), input.name) == fed.end()) unknown.push_back(input.name);
    }
    if (!unknown.empty()) found.add(graph.file, format("the engine does not feed {}", some_of(unknown)));
  }
}

void check_outputs(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (is_decoder(bundle, graph) && graph.output("logits") == nullptr)
      found.add(graph.file, "the decoder has no output \"logits\"");
    bool is_encoder = is_encoder_decoder(bundle) && is_named(graph, {"encoder"}, {"decoder"});
    if (is_encoder && graph.model && graph.output("last_hidden_state") == nullptr)
      found.add(graph.file, "the encoder has no output \"last_hidden_state\"");
  }
}

/// Sizes of the first, empty cache, as the classes compute them from the configuration.
struct CacheSize {
  std::optional<int64_t> heads, key_size, value_size;
};

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

CacheSize cache_size(const LintedBundle& bundle) {
  JsonView config = bundle.config();
  std::string_view type = bundle.model_type();
  auto number = [&](std::initializer_list<std::string_view> names) { return bundle.text_number(names); };
  auto heads = number({"num_attention_heads", "n_head", "num_heads", "decoder_attention_heads"});
  auto hidden = number({"hidden_size", "n_embd", "d_model"});
  CacheSize size;
  if (hidden && heads && *heads > 0) size.key_size = *hidden / *heads;
  if (is_one_of(type, {"gemma", "gemma3_text", "gpt_oss", "nemotron", "gemma3"})) size.key_size = number({"head_dim"});
  size.value_size = size.key_size;
  size.heads = heads;
  if (is_encoder_decoder(bundle)) return size;
  if (is_one_of(type, {"arcee", "deepseek_v3", "cohere", "gemma", "gemma3_text", "gemma3", "glm", "granite", "gpt_oss",
                       "helium", "mistral", "llama", "nemotron", "qwen2", "qwen3", "qwen3_moe", "smollm3", "stablelm"}))
    size.heads = number({"num_key_value_heads"});
  if (type == "deepseek_v3") {
    auto rotated = number({"qk_rope_head_dim"}), plain = number({"qk_nope_head_dim"});
    size.key_size = rotated && plain ? std::optional(*rotated + *plain) : std::nullopt;
    size.value_size = number({"v_head_dim"});
  }
  bool is_multi_query = config.find("multi_query").as_bool().value_or(false);
  if (type == "falcon") {
    bool is_new = config.find("new_decoder_architecture").as_bool().value_or(false);
    size.heads = is_new || !is_multi_query ? number({"num_kv_heads"}) : std::optional<int64_t>(1);
  }
  if (type == "gpt_bigcode") size.heads = is_multi_query ? std::optional<int64_t>(1) : heads;
  return size;
}

void check_cache_size(const LintedBundle& bundle, const FindingSink& found) {
  CacheSize size = cache_size(bundle);
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!is_decoder(bundle, graph)) continue;
    for (const CachePort& port : cache_inputs(graph)) {
      const std::vector<OnnxDim>& shape = port.value->shape;
      if (shape.size() != 4) continue;
      auto last = port.value->name.find(".key") != std::string::npos ? size.key_size : size.value_size;
      bool is_wrong = (size.heads && shape[1].value && *shape[1].value != *size.heads) ||
                      (last && shape[3].value && *shape[3].value != *last);
      if (!is_wrong) continue;
      found.add(graph.file, format("{} is {}, the engine makes {} heads of {}", quoted(port.value->name),
                                   shape_text(*port.value), size.heads.value_or(0), last.value_or(0)));
      break;  // the others are alike
    }
  }
}

void check_merged(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!graph.model || !is_named(graph, {"decoder", "merged"})) continue;
    std::vector<CachePort> inputs = cache_inputs(graph), outputs = cache_outputs(graph);
    auto is_cross = [](const CachePort& port) { return port.is_cross(); };
    if (inputs.empty())
      found.add(graph.file, "it is called merged, and takes no cache");
    else if (std::any_of(inputs.begin(), inputs.end(), is_cross) &&
             std::none_of(outputs.begin(), outputs.end(), is_cross))
      found.add(graph.file, "it takes caches of cross-attention, but does not give them");
  }
}

constexpr LintRule kOptimumRules[] = {
    {"optimum-config-missing", kLintError, "no config.json, or one without model_type", "copy config.json of the model",
     check_config},
    {"optimum-graph-missing", kLintError, "an encoder-decoder without its encoder or decoder graph",
     "export with --for optimum", check_files},
    {"optimum-past-missing", kLintWarning,
     "a decoder without the graph for later tokens, so that each repeats the whole",
     "export with --for optimum: a merged decoder", check_past},
    {"optimum-graph-name", kLintWarning, "a graph that is not called model.onnx, so that it must be named when opened",
     "rename it to model.onnx", check_name},
    {"optimum-data-name", kLintWarning,
     "external data under another name than is downloaded with a graph (optimum#1736)",
     "write the graph again with its data in <name>.onnx_data", check_data_name},
    {"optimum-input", kLintError, "an input of a decoder that the classes do not feed", "rename or remove the input",
     check_inputs},
    {"optimum-output", kLintError, "a decoder without logits, or an encoder without last_hidden_state",
     "rename the output", check_outputs},
    {"optimum-cache-size", kLintError,
     "a cache of other sizes than the classes make from config.json (optimum-onnx#97)",
     "use a version of optimum that takes head_dim and num_key_value_heads of this type from config.json",
     check_cache_size},
    {"optimum-merged", kLintError, "a merged decoder that takes no cache, or cannot compute its cross-attention",
     "export with --for optimum", check_merged},
    {"optimum-tokenizer-missing", kLintWarning,
     "graphs that take tokens, without tokenizer.json and tokenizer_config.json", "copy both from the model",
     check_tokenizer_there},
    {"optimum-tokenizer-class", kLintWarning,
     "a class of tokenizers that transformers 4, which optimum-onnx needs, does not have",
     "write PreTrainedTokenizerFast as tokenizer_class", check_tokenizer_class},
    {"optimum-generation-config", kLintWarning, "a model that generates without generation_config.json",
     "copy it from the model, if it has one", check_generation_config},
};

}  // namespace

std::span<const LintRule> lint_optimum_rules() { return kOptimumRules; }

}  // namespace argosy::engines
