#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace argosy {

/// SHA-256 (FIPS 180-4) in lower-case hexadecimal: names contents so that no two that meet have the same name. A few
/// hundred MB/s; for small constants.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace argosy
