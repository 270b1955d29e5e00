#pragma once

#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Every dim that users call "batch" has one row.
void fix_batch(Component& component);

/// A component that makes embeddings of pictures or of sound: one input, features [1, tokens, width]. One that is given
/// more than its media is an error. Sound may come in up to `max_chunks` pieces, which follow each other.
Status bind_media(Program& program, Component& component, int64_t max_chunks);

/// A component that puts features into the embeddings of a text: tokens -> embeddings alone, whatever the tokens are.
/// Everything that features are given by goes.
Status bind_embedding(Program& program, Component& component, int64_t max_seq_len);

/// A component whose callers pass these inputs, in this order, and no others: masks that they leave out are one
/// everywhere, types of tokens zero. Those that the model lacks are passed over.
Status bind_plain(Program& program, Component& component, const std::vector<std::string_view>& inputs);

}  // namespace argosy::executorch
