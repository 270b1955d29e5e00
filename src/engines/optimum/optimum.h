#pragma once

#include "base/result.h"
#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

/// The classes ORTModelFor… of optimum-onnx 0.1: model.onnx, or encoder_model.onnx and decoder_model_merged.onnx over
/// one data file, with a tokenizer that transformers 4 reads.
Result<BundlePlan> plan_optimum(const SourceModel& model);

}  // namespace argosy::engines
