#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace argosy::engines::transformersjs {

/// Graphs that the engine opens for a model of this config.json, without folder, suffix and ending:
/// "encoder_model", "decoder_model_merged".
std::vector<std::string> sessions(JsonView config);

/// What the engine knows of a model's cache.
struct CacheNames {
  bool is_known = false;        // whether it feeds models of this type a cache at all
  bool is_complete = false;     // whether `names` are all; there are types whose names are not worked out here
  std::set<std::string> names;  // inputs that it feeds
};
CacheNames cache_names(JsonView config);

/// Data types that `dtype` in transformers.js_config may name, with the suffix of their files. fp32 has none.
struct DataTypeSuffix {
  std::string_view name, suffix;
};
std::span<const DataTypeSuffix> data_types();

/// How many data files the configuration declares for the weights of a graph; `file` is "model_q4.onnx", `base` is
/// "model".
int64_t declared_chunks(JsonView config, std::string_view file, std::string_view base);

}  // namespace argosy::engines::transformersjs
