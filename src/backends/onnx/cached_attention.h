#pragma once

#include "backends/onnx/document.h"
#include "passes/pass.h"

namespace argosy::onnx {

/// "use-group-query-attention": causal attention over past keys and values, which are an input, and new ones becomes
/// one op, which also gives the new cache: GroupQueryAttention of ONNX Runtime. For engines that pad batches at the
/// end: the op keeps tokens of a row together in its cache, without what the mask hides. After normalise.
Pass use_group_query_attention();

/// How many inputs such ops continue as caches and nothing else reads, not even for their sizes.
size_t count_kept_caches(const Model& model);

}  // namespace argosy::onnx
