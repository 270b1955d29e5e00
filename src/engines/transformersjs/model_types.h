#pragma once

#include <optional>
#include <string_view>

namespace argosy::engines::transformersjs {

// What transformers.js 4.3 knows of the model types that generate: it makes the names of caches from config.json, and
// which members it reads depends on the type. Sizes come from the graphs.

/// Members of config.json with the number of layers, for a text decoder whose layers all have a key and a value;
/// nullopt for types that it does not know.
std::optional<std::string_view> decoder_layers_key(std::string_view model_type);

/// The same for the decoder of an encoder and decoder.
std::optional<std::string_view> seq2seq_layers_key(std::string_view model_type);

/// The same for the decoder of a vision encoder, "decoder" in config.json: types with states of cross-attention.
std::optional<std::string_view> vision_decoder_layers_key(std::string_view model_type);

/// How layers with other states than keys and values name them.
struct HybridType {
  std::string_view model_type;
  std::string_view second;  // state besides "conv" of the layers without attention: "ssm", "recurrent"; may be empty
};
const HybridType* hybrid_type(std::string_view model_type);

/// Whether it puts features of images or sounds into the embeddings of a text for this type, and by which inputs.
bool is_image_text_type(std::string_view model_type);
bool is_audio_text_type(std::string_view model_type);
/// Whether positions of this type have three parts, which the engine computes.
bool has_image_positions(std::string_view model_type);

// Known types that stand for those that the engine does not know, since only names of caches depend on them.
inline constexpr std::string_view kAnyDecoder = "llama", kAnySeq2Seq = "bart", kAnyVisionDecoder = "trocr";

}  // namespace argosy::engines::transformersjs
