#pragma once

#include <string_view>

#include "base/result.h"
#include "engines/genai/config.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines::genai {

inline constexpr std::string_view kDataFile = "model.onnx.data";

/// How notes on padding begin. They do not hold where the engine's own attention continues all caches.
inline constexpr std::string_view kPaddingNote = "the engine fills up the shorter prompts of a batch at their end";

/// A decoder's graph, and what genai_config.json says of it.
struct DecoderPlan {
  GraphPlan graph;
  Section section;
  int64_t vocab_size = 0;
  std::vector<std::string> notes;  // what its users should know
};

/// The component `decode` of a model that the engine runs token by token, given ids or embeddings.
Result<DecoderPlan> plan_decoder(const SourceModel& model, const ComponentInterface& decode);

/// The engine's type for a model that is only a decoder: the model's own type if the engine treats it as any decoder,
/// else "decoder".
std::string decoder_type(const SourceModel& model, const DecoderPlan& decoder);

}  // namespace argosy::engines::genai
