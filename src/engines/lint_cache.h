#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engines/lint_bundle.h"

namespace argosy::engines {

/// An input that takes an output of the previous call, such as "past_key_values.3.decoder.key".
struct CachePort {
  const OnnxValue* value = nullptr;
  int64_t layer = -1;  // 3; -1 if the name has no number
  std::string role;    // the name without its number: "past_key_values..decoder.key"

  bool is_key() const { return role.ends_with("key"); }
  bool is_value() const { return role.ends_with("value") && !role.ends_with("key_value"); }
  /// Whether it belongs to cross attention: computed once from the encoder's result, then unchanged.
  bool is_cross() const;
};

/// Inputs whose names begin with "past", but for lengths ("past_sequence_length").
std::vector<CachePort> cache_inputs(const LintedGraph& graph);
/// Outputs whose names begin with "present".
std::vector<CachePort> cache_outputs(const LintedGraph& graph);
/// "past_key_values.0.key" as outputs call it: "present.0.key".
std::string present_name(std::string_view past);

/// Whether any graph has a cache, as those that generate text have.
bool has_cache(const LintedBundle& bundle);

/// Layers that keep keys and values, by the configuration; nullopt if it does not say, or is of a kind that is not
/// known here.
std::optional<std::vector<int64_t>> configured_cache_layers(const LintedBundle& bundle, bool is_cross_decoder);

/// The text of a shape: "[batch, 4, ?, 64]".
std::string shape_text(const OnnxValue& value);

}  // namespace argosy::engines
