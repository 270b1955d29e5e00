#pragma once

#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

/// Writes a tokenizer_config.json that older readers take, where the model's own is not one: they do not know what
/// transformers 5 calls tokenizers without a class of their own, nor a list of extra tokens.
void add_tokenizer_config(const SourceModel& model, BundlePlan& plan);

}  // namespace argosy::engines
