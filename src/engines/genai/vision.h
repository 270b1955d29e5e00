#pragma once

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines::genai {

/// Whether the model is made of an encoder of pictures, embeddings that its features are put into, and a decoder.
bool is_vision_language(const SourceModel& model);

/// The engine runs vision.onnx once, embedding.onnx and model.onnx for every token. It has processors for few
/// architectures; others get their inputs from transformers' processor, which the model card shows.
Result<BundlePlan> plan_vision_language(const SourceModel& model);

}  // namespace argosy::engines::genai
