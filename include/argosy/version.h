#pragma once

#include <string_view>

namespace argosy {

/// The version of the linked library, e.g. "0.1.0".
std::string_view version();

}  // namespace argosy
