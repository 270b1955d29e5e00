#pragma once

#include <map>

#include "backends/executorch/generation/caches.h"
#include "backends/executorch/generation/decoder_call.h"
#include "passes/structures/mask_reader.h"

namespace argosy::executorch {

/// Replaces masks that are nothing but conditions on positions (MaskReader) by masks computed from positions alone, one
/// for all that are equal. Before states are kept.
void simplify_masks(DecoderCall& call);

/// Attention over kept keys and values becomes llama::custom_sdpa where that computes the same: keys, values and
/// queries of one size, a mask that is the same for all heads. Heads of keys are not repeated for it.
void use_custom_attention(DecoderCall& call, const std::map<uint32_t, CachedKeys>& keys);

}  // namespace argosy::executorch
