#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "tensor/source.h"

namespace argosy {

/// How GGUF packs a run of values with their scales: kQ4K is its Q4_K.
enum class BlockFormat : uint8_t { kNone, kQ40, kQ41, kQ50, kQ51, kQ80, kQ4K, kQ5K, kQ6K };

struct BlockLayout {
  std::string_view name;  // "Q4_K"
  int64_t values = 1;     // of a block
  int64_t bytes = 1;      // that it takes
};
BlockLayout layout_of(BlockFormat kind);

/// The values of one block, in f32, each operation rounded by itself. `block` has the bytes of one block, `out` room
/// for its values.
void decode_block(BlockFormat kind, const std::byte* block, float* out);

/// The values of blocks: `bytes` is u8, a whole number of blocks in its last dim, which in the result (f32) has the
/// values instead.
Result<TensorSourcePtr> blocks_decoded(const TensorSourcePtr& bytes, BlockFormat kind);

}  // namespace argosy
