#include "engines/companions.h"

#include <algorithm>
#include <string_view>

namespace argosy::engines {
namespace {

constexpr std::string_view kNames[] = {
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "feature_extractor_config.json",
    "generation_config.json",
    "merges.txt",
    "normalizer.json",
    "preprocessor_config.json",
    "processor_config.json",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "tekken.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "video_preprocessor_config.json",
    "vocab.json",
    "vocab.txt",
};

/// Licences have many endings and spellings; sentencepiece models are called after the model.
bool is_named_like_a_companion(std::string_view file) {
  for (std::string_view stem : {"LICENSE", "LICENCE", "NOTICE", "USE_POLICY", "COPYING"}) {
    if (file.starts_with(stem)) return true;
  }
  return file == "tokenizer.model" || file == "spiece.model" || file == "sentencepiece.bpe.model";
}

std::vector<std::string> companions_of(const std::vector<std::string>& files) {
  std::vector<std::string> found;
  for (const std::string& file : files) {
    bool is_listed = std::find(std::begin(kNames), std::end(kNames), file) != std::end(kNames);
    if (is_listed || is_named_like_a_companion(file)) found.push_back(file);
  }
  return found;
}

}  // namespace

std::vector<std::string> companion_files(const SourceModel& model) { return companions_of(model.files); }
std::vector<std::string> left_out_companions(const SourceModel& model) { return companions_of(model.left_out); }

}  // namespace argosy::engines
