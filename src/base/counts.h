#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argosy {

/// "90,000"
std::string format_count(uint64_t count);
/// "1 node", "2 nodes", "90,000 nodes"
std::string count_of(uint64_t count, std::string_view singular);

}  // namespace argosy
