#pragma once

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines::genai {

/// Whether the model is one that the engine's type "whisper" is for: an encoder of sounds whose states of
/// cross-attention go into a decoder of text.
bool is_whisper(const SourceModel& model);

/// Encoder and decoder under their own names, which genai_config.json tells the engine. The engine wants 3000 frames.
Result<BundlePlan> plan_whisper(const SourceModel& model);

}  // namespace argosy::engines::genai
