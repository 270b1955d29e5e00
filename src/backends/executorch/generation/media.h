#pragma once

#include "base/result.h"
#include "ir/program.h"

namespace argosy::executorch {

/// Every dim that users call "batch" has one row.
void fix_batch(Component& component);

/// Binds a component that makes embeddings of pictures or of sound: one input, features [1, tokens, width]. If it needs
/// more inputs, that is an error. Sound may come in up to `max_chunks` pieces, one after the other.
Status bind_media(Program& program, Component& component, int64_t max_chunks);

/// Binds a component that puts features into the embeddings of a text: tokens -> embeddings alone, whatever the tokens
/// are. All inputs for features are removed.
Status bind_embedding(Program& program, Component& component, int64_t max_seq_len);

/// Binds a component whose callers pass these inputs, in this order, and no others: masks that they do not pass are one
/// everywhere, types of tokens zero. Inputs that the model lacks are skipped.
Status bind_plain(Program& program, Component& component, const std::vector<std::string_view>& inputs);

}  // namespace argosy::executorch
