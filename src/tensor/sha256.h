#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace argosy {

/// SHA-256 (FIPS 180-4) of bytes that come in parts. A few hundred MB/s.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  /// In lower-case hexadecimal. Nothing may be added afterwards.
  std::string hex();

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};  // what has not filled a block yet
  uint64_t size_ = 0;
};

/// Of all at once: names contents so that no two that meet have the same name.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace argosy
