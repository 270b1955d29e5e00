#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace argosy {

/// The CRC-32 of zip files and PNG, continued from that of what came before (0 at the start). Uses the processor's
/// carry-less multiplication where it has one: about the speed of memory.
uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes);

/// The CRC of a text followed by another of `second_size` bytes, from those of both.
uint32_t combined_crc32(uint32_t first, uint32_t second, uint64_t second_size);

}  // namespace argosy
