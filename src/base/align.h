#pragma once

#include <cstdint>

namespace argosy {

/// The next multiple of `alignment` that is not below `offset`.
inline uint64_t rounded_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace argosy
