// Caches: each state that a graph takes it also gives, for the layers and in the sizes of the configuration.

#include "engines/lint_cache.h"

#include <algorithm>
#include <optional>
#include <set>

#include "engines/lint_rule.h"

namespace argosy::engines {
namespace {

constexpr std::string_view kPast = "past", kPresent = "present";

CachePort cache_port(const OnnxValue& value) {
  CachePort port{&value, -1, value.name};
  size_t first = port.role.find_first_of("0123456789");
  if (first == std::string::npos) return port;
  size_t end = port.role.find_first_not_of("0123456789", first);
  if (end == std::string::npos) end = port.role.size();
  if (end - first > 6) return port;
  port.layer = std::stoll(port.role.substr(first, end - first));
  port.role.erase(first, end - first);
  return port;
}

std::vector<CachePort> ports(const std::vector<OnnxValue>& values, std::string_view prefix) {
  std::vector<CachePort> found;
  for (const OnnxValue& value : values) {
    bool is_length = value.name.find("length") != std::string::npos;
    if (value.name.starts_with(prefix) && !is_length) found.push_back(cache_port(value));
  }
  return found;
}

/// torch.export writes the dots of some names as underscores.
std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

void check_unpaired(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    std::set<std::string> taken, given;  // names of outputs, with underscores
    for (const CachePort& port : cache_inputs(graph)) taken.insert(with_underscores(present_name(port.value->name)));
    for (const CachePort& port : cache_outputs(graph)) given.insert(with_underscores(port.value->name));
    if (taken.empty()) continue;  // a graph for prompts only: it makes a cache, and takes none
    std::vector<std::string> lacking, unknown;
    for (const CachePort& port : cache_inputs(graph)) {
      std::string name = present_name(port.value->name);
      if (!port.is_cross() && !given.contains(with_underscores(name))) lacking.push_back(name);
    }
    for (const CachePort& port : cache_outputs(graph)) {
      if (!port.is_cross() && !taken.contains(with_underscores(port.value->name))) unknown.push_back(port.value->name);
    }
    if (!lacking.empty()) found.add(graph.file, format("it takes a cache but has no output {}", some_of(lacking)));
    if (!unknown.empty()) found.add(graph.file, format("it gives {} without taking it back", some_of(unknown)));
  }
}

void check_halves(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    std::vector<std::string> lacking;
    for (const CachePort& port : cache_inputs(graph)) {
      std::string_view before = port.role;
      if (size_t dot = before.rfind('.'); dot != std::string_view::npos) before = before.substr(0, dot);
      bool is_usual = before == "past_key_values." || before.ends_with(".decoder") || before.ends_with(".encoder");
      if (!is_usual || !(port.is_key() || port.is_value())) continue;
      std::string_view half = port.is_key() ? "key" : "value", other = port.is_key() ? "value" : "key";
      std::string name = port.value->name;
      name.replace(name.rfind(half), half.size(), other);
      if (graph.input(name) == nullptr) lacking.push_back(name);
    }
    if (!lacking.empty()) found.add(graph.file, format("one half of a cache is there, but not {}", some_of(lacking)));
  }
}

/// Layers with keys of self attention.
std::set<int64_t> key_layers(const LintedGraph& graph) {
  std::set<int64_t> layers;
  for (const CachePort& port : cache_inputs(graph)) {
    if (port.is_key() && !port.is_cross() && port.layer >= 0) layers.insert(port.layer);
  }
  return layers;
}

bool is_encoder_decoder(const LintedGraph& graph) {
  std::vector<CachePort> inputs = cache_inputs(graph);
  return std::any_of(inputs.begin(), inputs.end(), [](const CachePort& port) { return port.is_cross(); });
}

void check_layers(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    std::set<int64_t> layers = key_layers(graph);
    if (layers.empty()) continue;
    auto expected = configured_cache_layers(bundle, is_encoder_decoder(graph));
    if (!expected) continue;
    std::vector<std::string> lacking, more;
    std::set<int64_t> wanted(expected->begin(), expected->end());
    for (int64_t layer : wanted) {
      if (!layers.contains(layer)) lacking.push_back(std::to_string(layer));
    }
    for (int64_t layer : layers) {
      if (!wanted.contains(layer)) more.push_back(std::to_string(layer));
    }
    if (!lacking.empty())
      found.add(graph.file, format("config.json has {} layers with a cache, the graph none for {}", wanted.size(),
                                   some_of(lacking)));
    if (!more.empty())
      found.add(graph.file,
                format("config.json has {} layers with a cache, the graph also {}", wanted.size(), some_of(more)));
  }
}

struct Heads {
  int64_t count = 0, size = 0;
};

/// Heads of keys and values, where the configuration gives one number for all layers. Another field about them means
/// that some are different: v_head_dim, global_head_dim, kv_lora_rank.
std::optional<Heads> configured_heads(const LintedBundle& bundle) {
  for (const auto& [name, value] : bundle.text_config().members()) {
    bool is_usual = name == "head_dim" || name == "num_key_value_heads";
    bool is_about_heads = name.find("head_dim") != std::string_view::npos ||
                          name.find("key_value_heads") != std::string_view::npos ||
                          name.find("lora_rank") != std::string_view::npos;
    if (is_about_heads && !is_usual) return std::nullopt;
  }
  auto heads = bundle.text_number({"num_key_value_heads"}), queries = bundle.text_number({"num_attention_heads"});
  auto hidden = bundle.text_number({"hidden_size"}), size = bundle.text_number({"head_dim"});
  if (!size && hidden && queries && *queries > 0) size = *hidden / *queries;
  if (!heads || !size) return std::nullopt;
  return Heads{*heads, *size};
}

/// Keys and values of self attention, if all have the same heads: else one number cannot describe all layers.
std::vector<CachePort> equal_keys_and_values(const LintedGraph& graph) {
  std::vector<CachePort> ports;
  for (const CachePort& port : cache_inputs(graph)) {
    const std::vector<OnnxDim>& shape = port.value->shape;
    if (port.is_cross() || !(port.is_key() || port.is_value()) || shape.size() != 4) continue;
    ports.push_back(port);
    const std::vector<OnnxDim>& first = ports[0].value->shape;
    if (shape[1].value != first[1].value || shape[3].value != first[3].value) return {};
  }
  return ports;
}

void check_shape(const LintedBundle& bundle, const FindingSink& found) {
  std::optional<Heads> heads = configured_heads(bundle);
  if (!heads) return;
  for (const LintedGraph& graph : bundle.graphs()) {
    std::vector<CachePort> ports = equal_keys_and_values(graph);
    if (ports.empty()) continue;
    const OnnxValue& value = *ports[0].value;
    if (value.shape[1].value.value_or(heads->count) == heads->count &&
        value.shape[3].value.value_or(heads->size) == heads->size) {
      continue;
    }
    found.add(graph.file, format("{} is {}, by config.json it has {} heads of {}", quoted(value.name),
                                 shape_text(value), heads->count, heads->size));
  }
}

/// Where ONNX Runtime's op rotates heads, their size must be a multiple of 16, else of 8.
void check_head_size(const LintedBundle& bundle, const FindingSink& found) {
  auto configured = bundle.json("genai_config.json").find("model").find("decoder").find("head_size").as_integer();
  for (const LintedGraph& graph : bundle.graphs()) {
    if (graph.count_of("com.microsoft", "GroupQueryAttention") == 0) continue;
    for (const CachePort& port : cache_inputs(graph)) {
      const std::vector<OnnxDim>& shape = port.value->shape;
      if (!port.is_key() || shape.size() != 4) continue;
      int64_t size = shape[3].value.value_or(configured.value_or(0));
      if (size % 16 == 0) continue;
      found.add(
          graph.file,
          format(
              "GroupQueryAttention computes heads of {}, but wants a multiple of 16, or of 8 where it does not rotate",
              size));
      break;
    }
  }
}

void check_dtype(const LintedBundle& bundle, const FindingSink& found) {
  for (const LintedGraph& graph : bundle.graphs()) {
    for (const CachePort& port : cache_inputs(graph)) {
      const OnnxValue* output = graph.output(present_name(port.value->name));
      if (output == nullptr || output->type == port.value->type) continue;
      found.add(graph.file, format("{} is {}, {} is {}", quoted(port.value->name), port.value->type,
                                   quoted(output->name), output->type));
      break;
    }
  }
}

constexpr LintRule kCacheRules[] = {
    {"cache-unpaired", kLintError, "a cache input without the output that feeds it, or the reverse",
     "export the decoder again with its cache: past_key_values.N.key goes with present.N.key", check_unpaired},
    {"cache-half", kLintError, "keys of a layer without values, or values without keys",
     "export the decoder again with its cache", check_halves},
    {"cache-type", kLintError, "a cache that comes back in another element type than it is taken in",
     "convert inputs and outputs of the graph alike", check_dtype},
    {"cache-layers", kLintError, "caches for other layers than config.json has, or with gaps",
     "export again, or copy the config.json that belongs to this graph", check_layers},
    {"cache-shape", kLintError, "numbers or sizes of key-value heads that differ from config.json (optimum-onnx#97)",
     "export again with num_key_value_heads and head_dim of the configuration", check_shape},
    {"attention-head-size", kLintWarning, "heads of a size that GroupQueryAttention refuses when it runs",
     "export with ops of ONNX for attention", check_head_size},
};

}  // namespace

bool CachePort::is_cross() const {
  return role.find("encoder") != std::string::npos || role.find("cross") != std::string::npos;
}

std::vector<CachePort> cache_inputs(const LintedGraph& graph) {
  return graph.model ? ports(graph.model->inputs, kPast) : std::vector<CachePort>();
}

std::vector<CachePort> cache_outputs(const LintedGraph& graph) {
  return graph.model ? ports(graph.model->outputs, kPresent) : std::vector<CachePort>();
}

std::string present_name(std::string_view past) {
  constexpr std::string_view kLong = "past_key_values";
  std::string_view rest = past.substr(past.starts_with(kLong) ? kLong.size() : kPast.size());
  return format("{}{}", kPresent, rest);
}

bool has_cache(const LintedBundle& bundle) {
  return std::any_of(bundle.graphs().begin(), bundle.graphs().end(), [](const LintedGraph& graph) {
    return !cache_inputs(graph).empty() || !cache_outputs(graph).empty();
  });
}

std::optional<std::vector<int64_t>> configured_cache_layers(const LintedBundle& bundle, bool is_cross_decoder) {
  // Models with these have layers that share the cache of others, or have none.
  for (std::string_view key : {"num_kv_shared_layers", "layers_block_type", "hybrid_override_pattern",
                               "attn_layer_indices", "attn_layer_period", "full_attn_idxs", "hybrid_layer_ids",
                               "num_hidden_layers_per_block", "block_types", "cla_share_factor"}) {
    if (JsonView value = bundle.text_config().find(key);
        value.is_valid() && !value.is_null() && value.as_integer() != 0)
      return std::nullopt;
  }
  auto count = is_cross_decoder ? bundle.text_number({"decoder_layers", "num_decoder_layers", "num_layers"})
                                : bundle.text_number({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  if (!count || *count < 0 || *count > 10'000) return std::nullopt;
  std::vector<int64_t> layers;
  JsonView types = bundle.text_config().find("layer_types");
  if (types.is_array() && !is_cross_decoder) {
    int64_t layer = 0;
    for (JsonView type : types.items()) {
      std::string_view name = type.as_string().value_or("");
      if (name != "full_attention" && name != "sliding_attention" && name != "chunked_attention") return std::nullopt;
      layers.push_back(layer++);
    }
    return layers;
  }
  for (int64_t layer = 0; layer < *count; ++layer) layers.push_back(layer);
  return layers;
}

std::span<const LintRule> lint_cache_rules() { return kCacheRules; }

std::string shape_text(const OnnxValue& value) {
  std::vector<std::string> dims;
  dims.reserve(value.shape.size());
  for (const OnnxDim& dim : value.shape)
    dims.push_back(dim.value ? std::to_string(*dim.value) : dim.name.empty() ? "?" : dim.name);
  return format("[{}]", join(dims, ", "));
}

}  // namespace argosy::engines
