#pragma once

#include <string_view>

#include "backends/onnx/document.h"
#include "passes/pass.h"

namespace argosy::onnx {

struct GroupQueryOptions {
  /// The engine takes texts of at most so many tokens and counts their positions itself; the op then does the rotary
  /// embedding, from a table. 0: it does not.
  int64_t longest_text = 0;
  /// Projections to queries, keys and values become one, with a new weight.
  bool joins_weights = false;
  /// Element types that the op takes.
  bool takes_f32 = true, takes_f16 = true;
  /// It takes queries, keys and values as one tensor, too.
  bool packs = true;
};

/// "use-group-query-attention": causal attention over past keys and values, which are an input, and new ones becomes
/// one op, which also gives the new cache: GroupQueryAttention of ONNX Runtime. For engines that pad batches at the
/// end: the op keeps tokens of a row together in its cache, without what the mask hides. After normalise.
Pass use_group_query_attention(const GroupQueryOptions& options);
/// From {positions=2048,joins=1,types=3,packs=1}; of types, 1 is float32 and 2 is float16.
Result<Pass> use_group_query_attention_with(std::string_view settings);

/// How many inputs such ops continue as caches and nothing else reads, not even for their sizes.
size_t count_kept_caches(const Model& model);

}  // namespace argosy::onnx
