#pragma once

#include <optional>

#include "backends/executorch/generation/decoder_call.h"
#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Runners pass embeddings and positions to decoders, but not which embeddings are media. Where a decoder needs that
/// (tokens of a picture attend to each other), the methods that make embeddings add it themselves, as one column more
/// than the model's width: the type of each token, 0 for text. Runners pass these tensors on unchanged. A picture has
/// to come in one call, as runners pass it.
inline constexpr std::string_view kTokenTypes = "token_type_ids";

struct MediaTokens {
  int kinds = 0;                // that the task has methods for: pictures, sound; 0: text only
  std::optional<int64_t> type;  // of their tokens, where the decoder asks for types
};

/// The types that a decoder needs in a task with so many kinds of media. The type is known if there is one kind, and
/// the graph compares types with one number only, which is not that of text. Anything else is an error: runners cannot
/// give such a decoder what it needs.
Result<MediaTokens> read_media_tokens(const Program& program, const Component& decoder, int kinds);

/// The component's output, embeddings [1, tokens, width], gets the column.
Status add_type_column(Program& program, Component& component, int64_t type);

/// Takes the column off the embeddings that a decoder is given: the input `tokens` has it from now on, and the old
/// readers of `tokens` read the other columns. Returns the types of the call [1, sequence], i64.
ValueId take_type_column(DecoderCall& call);

}  // namespace argosy::executorch
