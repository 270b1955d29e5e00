#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace argosy::executorch {

/// Something that needs `size` bytes from one moment to another, both included.
struct TimedBlock {
  uint64_t size = 0;  // at most 2^48
  uint32_t first = 0, last = 0;
};

struct Packing {
  std::vector<uint64_t> offsets;  // of the blocks, in their order
  uint64_t size = 0;              // where the last of them ends
};

/// Gives every block an offset (a multiple of `alignment`) such that no two that exist at the same moment overlap, in
/// little space: blocks are placed in several orders, each into the tightest gap, and the best result is taken. Same
/// blocks, same offsets. Nearly linear in the number of blocks if most are short-lived.
Packing pack(std::span<const TimedBlock> blocks, uint64_t alignment);

/// The most bytes that exist at one moment: no packing is smaller.
uint64_t peak_bytes(std::span<const TimedBlock> blocks, uint64_t alignment);

}  // namespace argosy::executorch
