#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/model.h"

namespace argosy::engines::genai {

inline constexpr std::string_view kEngine = "ONNX Runtime GenAI";  // in messages
inline constexpr std::string_view kConfigFile = "genai_config.json";

/// A part of "model" in genai_config.json: describes one graph to the engine.
struct Section {
  std::string name;                                         // "decoder", "vision", "embedding", "encoder", "speech"
  std::string file;                                         // of the graph; empty: none
  std::vector<std::pair<std::string, int64_t>> numbers;     // "head_size" and the like
  std::vector<std::pair<std::string, std::string>> texts;   // "config_filename" and the like
  std::vector<std::pair<std::string, std::string>> inputs;  // the engine's word for each, and its name
  std::vector<std::pair<std::string, std::string>> outputs;
  std::vector<std::string> layer_types;  // of LFM2's kind of models; else none
};

struct Config {
  std::string type;  // one that the engine knows
  int64_t context_length = 0, vocab_size = 0;
  std::vector<std::pair<std::string, int64_t>> tokens;  // ids of special tokens besides bos, eos and pad
  std::vector<Section> sections;
};

/// genai_config.json. Special tokens and search options come from the model's generation settings, else from its
/// configuration.
std::string config_text(const Config& config, const SourceModel& model);

/// How many tokens the model's positions reach; a usual number where nothing says.
int64_t context_length(const SourceModel& model);

}  // namespace argosy::engines::genai
