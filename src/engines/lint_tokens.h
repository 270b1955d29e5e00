#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/lint_rule.h"

namespace argosy::engines {

// Checks that the rules of several engines share.
void check_generation_config(const LintedBundle& bundle, const FindingSink& found);  // there, if a model generates
void check_tokenizer_there(const LintedBundle& bundle, const FindingSink& found);    // where graphs take tokens
void check_tokenizer_class(const LintedBundle& bundle, const FindingSink& found);    // one that transformers 4 has

/// Whether the model's own configuration says that it has no end token (null), so that none is missing.
bool has_no_end_token(const LintedBundle& bundle);

/// "1, 2": a few of them, for messages.
std::string ids_text(const std::vector<int64_t>& ids);

}  // namespace argosy::engines
