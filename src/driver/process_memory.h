#pragma once

#include <cstdint>

namespace argosy {

/// The peak resident memory of this process so far, in bytes; 0 where the system does not tell.
uint64_t peak_rss_bytes();

}  // namespace argosy
