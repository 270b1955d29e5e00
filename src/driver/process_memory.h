#pragma once

#include <cstdint>

namespace argosy {

/// The most memory that this process has had resident so far, in bytes; 0 where the system does not tell.
uint64_t peak_rss_bytes();

}  // namespace argosy
