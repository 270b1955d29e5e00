#pragma once

#include "engines/model.h"
#include "engines/plan.h"

namespace argosy::engines {

/// Adds a tokenizer_config.json that older readers take, if the model's own is not one: they know neither the class
/// name that transformers 5 gives to tokenizers without a class of their own, nor a list of extra tokens.
void add_tokenizer_config(const SourceModel& model, BundlePlan& plan);

}  // namespace argosy::engines
