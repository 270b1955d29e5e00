#pragma once

#include <optional>

#include "backends/executorch/generation/decoder_call.h"
#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Runners pass decoders embeddings and positions, and do not say which embeddings are media. Where a decoder asks
/// (pictures whose tokens see each other), the methods that make embeddings say it themselves, in one column more than
/// the model's width: the type of each token, 0 of text. Runners hand the tensors on as they are. A picture has to come
/// in one call, as runners pass it.
inline constexpr std::string_view kTokenTypes = "token_type_ids";

struct MediaTokens {
  int kinds = 0;                // that the task has methods for: pictures, sound; 0: a text is all that there is
  std::optional<int64_t> type;  // of their tokens, where the decoder asks for types
};

/// What a decoder asks of a task with so many kinds of media. The type is known where there is one kind, and the graph
/// compares types with one number alone, which is not that of text. Anything else is an error: runners cannot tell such
/// a decoder what it asks for.
Result<MediaTokens> read_media_tokens(const Program& program, const Component& decoder, int kinds);

/// The component's output, embeddings [1, tokens, width], gets the column.
Status add_type_column(Program& program, Component& component, int64_t type);

/// Takes the column off the embeddings that a decoder is given: `tokens` has it from now on, and what read `tokens`
/// reads the others. Returns the types of the call [1, sequence], i64.
ValueId take_type_column(DecoderCall& call);

}  // namespace argosy::executorch
