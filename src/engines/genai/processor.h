#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engines/model.h"

/// The engine's own processors: files that say which operations make a model's inputs of a picture or a sound.
namespace argosy::engines::genai {

/// Not "processor_config.json", as transformers has a file of that name.
inline constexpr std::string_view kImageProcessorFile = "genai_image_processor.json";
inline constexpr std::string_view kAudioProcessorFile = "genai_audio_processor.json";

/// Settings of transformers' image processor or feature extractor; invalid if no file has them.
class ProcessorSettings {
 public:
  /// From preprocessor_config.json, else from the member `part` ("image_processor") of processor_config.json.
  static Result<ProcessorSettings> read(const SourceModel& model, std::string_view part);
  JsonView root() const;
  bool is_valid() const { return root().is_valid(); }

 private:
  std::optional<JsonDocument> document_;
  std::string part_;  // of the document; empty: all of it
};

/// Pictures of one size, colours first. Fails if the engine's operations cannot do what the settings ask for.
Result<std::string> fixed_size_processor(const ProcessorSettings& settings);

/// Sizes of patches of Qwen-VL's kind of encoders.
struct PatchSizes {
  int64_t patch = 14, merge = 2, frames = 2;
};
/// Pictures of any size, as patches in the order of blocks.
Result<std::string> patch_processor(const ProcessorSettings& settings, const PatchSizes& sizes);

/// Whisper's spectrograms of 30 seconds.
Result<std::string> spectrogram_processor(const ProcessorSettings& settings, int64_t mel_bins);

/// How a model with a processor of the engine's own is run, for the model card: `call` makes its inputs of a prompt.
std::string processor_usage(std::string_view file, std::string_view prompt, std::string_view call, int64_t max_length);

}  // namespace argosy::engines::genai
