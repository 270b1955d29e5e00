#pragma once

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines::genai {

/// Whether the engine's type "whisper" fits the model: an encoder of sounds that makes the cross states of a decoder of
/// text.
bool is_whisper(const SourceModel& model);

/// Encoder and decoder under their own names, which are in genai_config.json. The engine wants 3000 frames.
Result<BundlePlan> plan_whisper(const SourceModel& model);

}  // namespace argosy::engines::genai
