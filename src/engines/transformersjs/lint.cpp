// What transformers.js 4.3 wants of a bundle.

#include <algorithm>
#include <charconv>

#include "engines/lint_cache.h"
#include "engines/lint_rule.h"
#include "engines/lint_tokens.h"
#include "engines/transformersjs/lint_tables.h"

namespace argosy::engines {
namespace {

using transformersjs::cache_names;
using transformersjs::CacheNames;
using transformersjs::data_types;
using transformersjs::DataTypeSuffix;
using transformersjs::declared_chunks;

constexpr int64_t kMaxChunks = 100;
constexpr uint64_t kMaxBuffer = uint64_t{1} << 31;

bool is_loaded(const LintedGraph& graph) { return graph.folder() == "onnx"; }

/// "decoder_model_merged" of "decoder_model_merged_q4f16".
std::string_view base_of(std::string_view stem) {
  std::string_view base = stem;
  for (const DataTypeSuffix& type : data_types()) {
    if (!type.suffix.empty() && stem.ends_with(type.suffix) && stem.size() - type.suffix.size() < base.size())
      base = stem.substr(0, stem.size() - type.suffix.size());
  }
  return base;
}

/// Whether there is a graph of that name for any data type.
bool has_any(const LintedBundle& bundle, std::string_view base) {
  return std::any_of(data_types().begin(), data_types().end(), [&](const DataTypeSuffix& type) {
    return bundle.file(format("onnx/{}{}.onnx", base, type.suffix)) != nullptr;
  });
}

void check_config(const LintedBundle& bundle, const FindingSink& found) {
  if (bundle.file("config.json") == nullptr)
    found.add("", "there is no config.json");
  else if (bundle.config().is_object() && bundle.model_type().empty())
    found.add("config.json", "it has no model_type");
}

bool is_unmerged(const LintedBundle& bundle) {
  for (std::string_view folder : {"", "onnx/"}) {
    if (bundle.file(format("{}decoder_model.onnx", folder)) != nullptr &&
        bundle.file(format("{}decoder_with_past_model.onnx", folder)) != nullptr)
      return true;
  }
  return false;
}

void check_graphs(const LintedBundle& bundle, const FindingSink& found) {
  if (!bundle.config().is_object()) return;
  for (const std::string& base : transformersjs::sessions(bundle.config())) {
    if (has_any(bundle, base) || (base == "decoder_model_merged" && is_unmerged(bundle))) continue;
    std::string file = format("{}.onnx", base);
    if (bundle.file(file) != nullptr)
      found.add(file, "it lies beside config.json, where it is not looked for",
                format("move it and its data to onnx/{}", file));
    else
      found.add("", format("there is no onnx/{}, nor one for another data type", file));
  }
}

void check_unmerged(const LintedBundle& bundle, const FindingSink& found) {
  if (!bundle.config().is_object() || !is_unmerged(bundle)) return;
  for (const std::string& base : transformersjs::sessions(bundle.config())) {
    if (base == "decoder_model_merged" && !has_any(bundle, base))
      found.add("",
                "there are decoder_model.onnx and decoder_with_past_model.onnx, but no onnx/decoder_model_merged.onnx");
  }
}

/// The data type that the configuration sets for a graph; empty if none.
std::string_view configured_type(const LintedBundle& bundle, std::string_view base) {
  JsonView type = bundle.config().find("transformers.js_config").find("dtype");
  if (type.is_object()) type = type.find(base);
  return type.as_string().value_or("");
}

void check_default_type(const LintedBundle& bundle, const FindingSink& found) {
  if (!bundle.config().is_object()) return;
  for (const std::string& base : transformersjs::sessions(bundle.config())) {
    std::string_view type = configured_type(bundle, base);
    auto row = std::find_if(data_types().begin(), data_types().end(),
                            [&](const DataTypeSuffix& each) { return each.name == type; });
    bool is_known = row != data_types().end();
    if (!type.empty() && type != "auto" && !is_known) {
      found.add("config.json", format("dtype in transformers.js_config is {}", quoted(type)),
                "write one such as fp32, fp16, q8 or q4");
      continue;
    }
    std::string file = format("onnx/{}{}.onnx", base, is_known ? row->suffix : "");
    if (has_any(bundle, base) && bundle.file(file) == nullptr)
      found.add("", format("{} is not there, which is opened unless a page names another data type", file));
  }
}

std::string chunk_name(const LintedGraph& graph, int64_t chunk) {
  return chunk == 0 ? format("{}.onnx_data", graph.stem()) : format("{}.onnx_data_{}", graph.stem(), chunk);
}

std::optional<int64_t> chunk_of(const LintedGraph& graph, std::string_view location) {
  std::string first = chunk_name(graph, 0);
  if (location == first) return 0;
  if (!location.starts_with(first + "_")) return std::nullopt;
  int64_t chunk = 0;
  std::string_view number = location.substr(first.size() + 1);
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), chunk);
  bool is_number = error == std::errc() && chunk > 0 && chunk < kMaxChunks;
  return is_number && chunk_name(graph, chunk) == location ? std::optional(chunk) : std::nullopt;
}

void check_data_name(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!is_loaded(graph) || !graph.model) continue;
    std::vector<std::string> others;
    for (const OnnxExternalFile& external : graph.model->external_files) {
      if (!chunk_of(graph, external.location)) others.push_back(external.location);
    }
    if (!others.empty())
      found.add(graph.file,
                format("its data is called {}, looked for is {}", some_of(others), quoted(chunk_name(graph, 0))));
  }
}

void check_undeclared(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!is_loaded(graph) || !graph.model || !bundle.config().is_object()) continue;
    int64_t needed = 0;
    for (const OnnxExternalFile& external : graph.model->external_files)
      needed = std::max(needed, chunk_of(graph, external.location).value_or(-1) + 1);
    int64_t declared = declared_chunks(bundle.config(), format("{}.onnx", graph.stem()), base_of(graph.stem()));
    if (declared < needed)
      found.add("config.json",
                format("{} has {} files of data, use_external_data_format declares {}", graph.file, needed, declared),
                format("write {{\"{}.onnx\": {}}} into use_external_data_format of transformers.js_config",
                       graph.stem(), needed));
    if (declared > kMaxChunks)
      found.add("config.json", format("use_external_data_format declares {} files for {}, {} is the most", declared,
                                      graph.file, kMaxChunks));
  }
}

void check_declared_missing(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    if (!is_loaded(graph) || !bundle.config().is_object()) continue;
    int64_t declared = declared_chunks(bundle.config(), format("{}.onnx", graph.stem()), base_of(graph.stem()));
    std::vector<std::string> lacking;
    for (int64_t chunk = 0; chunk < std::min(declared, kMaxChunks); ++chunk) {
      std::string name = format("onnx/{}", chunk_name(graph, chunk));
      if (bundle.file(name) == nullptr) lacking.push_back(name);
    }
    if (!lacking.empty())
      found.add("config.json", format("it declares data of {}, but {} is not there", graph.file, some_of(lacking)));
  }
}

void check_data_size(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedFile& file : bundle.files()) {
    if (file.name.starts_with("onnx/") && file.size >= kMaxBuffer)
      found.add(file.name, format("it takes {}, browsers refuse buffers of 2 GiB and more", format_bytes(file.size)));
  }
}

/// Calls `visit` for opened graphs that take caches.
template <class Visit>
void each_decoder(const LintedBundle& bundle, Visit visit) {
  for (const LintedGraph& graph : bundle.graphs()) {
    std::string_view base = base_of(graph.stem());
    bool is_decoder = base == "model" || base == "decoder_model_merged" || base == "language_model";
    if (is_loaded(graph) && graph.model && is_decoder && !cache_inputs(graph).empty()) visit(graph);
  }
}

void check_cache_known(const LintedBundle& bundle, const FindingSink& found) {
  if (!bundle.config().is_object() || cache_names(bundle.config()).is_known) return;
  each_decoder(bundle, [&](const LintedGraph& graph) {
    found.add(graph.file,
              format("it takes a cache, but the engine feeds none to a model of type {}", quoted(bundle.model_type())));
  });
}

void check_cache_names(const LintedBundle& bundle, const FindingSink& found) {
  if (!bundle.config().is_object()) return;
  CacheNames fed = cache_names(bundle.config());
  if (!fed.is_known || !fed.is_complete) return;
  each_decoder(bundle, [&](const LintedGraph& graph) {
    std::vector<std::string> unknown;
    for (const CachePort& port : cache_inputs(graph)) {
      if (!fed.names.contains(port.value->name)) unknown.push_back(port.value->name);
    }
    if (!unknown.empty())
      found.add(graph.file,
                format("the engine feeds {} caches by config.json, and not {}", fed.names.size(), some_of(unknown)));
  });
}

/// The engine makes the first, empty cache by the names of dims: "batch_size" is the batch, others are 0.
void check_cache_dims(const LintedBundle& bundle, const FindingSink& found) {
  each_decoder(bundle, [&](const LintedGraph& graph) {
    for (const CachePort& port : cache_inputs(graph)) {
      if (port.value->shape.empty()) continue;
      const OnnxDim& batch = port.value->shape[0];
      if (batch.value || batch.name.starts_with("batch_size")) continue;
      found.add(graph.file, format("the batch of {} is called {}", quoted(port.value->name), quoted(batch.name)));
      return;
    }
  });
}

constexpr std::string_view kFed[] = {"input_ids",        "inputs_embeds",         "attention_mask",
                                     "position_ids",     "encoder_hidden_states", "encoder_attention_mask",
                                     "use_cache_branch", "num_logits_to_keep",    "per_layer_inputs",
                                     "token_type_ids",   "decoder_attention_mask"};

void check_inputs(const LintedBundle& bundle, const FindingSink& found) {
  each_decoder(bundle, [&](const LintedGraph& graph) {
    std::vector<std::string> unknown;
    for (const OnnxValue& input : graph.model->inputs) {
      bool is_fed = std::find(std::begin(kFed), std::end(kFed), input.name) != std::end(kFed);
      if (!is_fed && !input.name.starts_with("past")) unknown.push_back(input.name);
    }
    if (!unknown.empty()) found.add(graph.file, format("the engine does not feed {}", some_of(unknown)));
  });
}

void check_outputs(const LintedBundle& bundle, const FindingSink& found) {
  each_decoder(bundle, [&](const LintedGraph& graph) {
    if (graph.output("logits") == nullptr && graph.output("last_hidden_state") == nullptr)
      found.add(graph.file, "it has no output \"logits\"");
  });
  std::vector<std::string> names =
      bundle.config().is_object() ? transformersjs::sessions(bundle.config()) : std::vector<std::string>();
  bool is_seq2seq = names.size() == 2 && names[0] == "encoder_model" && names[1] == "decoder_model_merged";
  for (const LintedGraph& graph : bundle.graphs()) {
    if (is_seq2seq && is_loaded(graph) && graph.model && base_of(graph.stem()) == "encoder_model" &&
        graph.output("last_hidden_state") == nullptr)
      found.add(graph.file, "the encoder has no output \"last_hidden_state\"");
  }
}

/// Caches of cross-attention are empty in the first call: the graph must compute them then.
void check_cross(const LintedBundle& bundle, const FindingSink& found) {
  each_decoder(bundle, [&](const LintedGraph& graph) {
    std::vector<CachePort> inputs = cache_inputs(graph);
    bool has_cross = std::any_of(inputs.begin(), inputs.end(), [](const CachePort& port) { return port.is_cross(); });
    if (!has_cross) return;
    std::vector<CachePort> outputs = cache_outputs(graph);
    bool gives = std::any_of(outputs.begin(), outputs.end(), [](const CachePort& port) { return port.is_cross(); });
    if (!gives || graph.input("encoder_hidden_states") == nullptr)
      found.add(graph.file, format("it takes caches of cross-attention, but {}",
                                   gives ? "no encoder_hidden_states to compute them from" : "does not give them"));
  });
}

constexpr LintRule kTransformersjsRules[] = {
    {"tjs-config-missing", kLintError, "no config.json, or one without model_type", "copy config.json of the model",
     check_config},
    {"tjs-graph-missing", kLintError, "a graph that models of this class are made of, in onnx/ (transformers.js#1485)",
     "export with --for transformersjs", check_graphs},
    {"tjs-not-merged", kLintError,
     "a decoder in two graphs, where the engine opens decoder_model_merged (transformers.js#917)",
     "export with --for transformersjs: one decoder for any past", check_unmerged},
    {"tjs-dtype", kLintWarning, "no graph for the data type that is opened by default",
     "write the one that there is as dtype into transformers.js_config of config.json", check_default_type},
    {"tjs-data-name", kLintError, "external data that is not called like its graph with _data, _data_1 and so on",
     "write the graph again with its data in <name>.onnx_data", check_data_name},
    {"tjs-data-undeclared", kLintError,
     "external data, or a part of it, that config.json does not declare (transformers.js#1460)",
     "declare it in use_external_data_format of transformers.js_config", check_undeclared},
    {"tjs-data-missing", kLintError, "external data that config.json declares and that is not there",
     "declare data only for graphs that have some", check_declared_missing},
    {"tjs-data-large", kLintWarning, "a file that is too large for browsers",
     "export with --for transformersjs, which cuts the data into smaller files", check_data_size},
    {"tjs-cache-unknown", kLintError,
     "a cache in a model of a type for which the engine has none (transformers.js#1415)",
     "use a version of transformers.js that knows the type, or export without a cache", check_cache_known},
    {"tjs-cache-name", kLintError, "cache inputs under names that the engine does not feed",
     "call them past_key_values.N.key and .value", check_cache_names},
    {"tjs-cache-dim", kLintWarning, "caches whose first dim is not called batch_size: the engine then makes it 0",
     "call the dim batch_size", check_cache_dims},
    {"tjs-cross-cache", kLintError, "a merged decoder that cannot compute its cross-attention in the first call",
     "export with --for transformersjs", check_cross},
    {"tjs-input", kLintError, "an input of a decoder that the engine does not feed", "rename or remove the input",
     check_inputs},
    {"tjs-output", kLintError, "a decoder without logits, or an encoder without last_hidden_state", "rename the output",
     check_outputs},
    {"tjs-tokenizer-missing", kLintWarning, "graphs that take tokens, without tokenizer.json and tokenizer_config.json",
     "copy both from the model", check_tokenizer_there},
    {"tjs-generation-config", kLintWarning, "a model that generates without generation_config.json",
     "copy it from the model, if it has one", check_generation_config},
};

}  // namespace

std::span<const LintRule> lint_transformersjs_rules() { return kTransformersjsRules; }

}  // namespace argosy::engines
