#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace argosy {

/// Permutes the dims of a packed row-major array: dim i of `out` is dim permutation[i] of `in`, whose extents are
/// given. Any element size; fast for 1, 2, 4, 8 and 16 bytes. Dims that stay together are moved together, and tiles of
/// two dims keep what is read and written in the cache. No overlap; no alignment needed; allocates nothing.
void permute_dims(std::span<const std::byte> in, std::span<const int64_t> extent, std::span<const int> permutation,
                  int64_t element_bytes, std::span<std::byte> out);

}  // namespace argosy
