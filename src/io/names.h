#pragma once

#include <string_view>

namespace argosy {

/// Whether a relative path written with '/' stays inside its folder: no empty, "." or ".." part, not absolute, no
/// backslash, no NUL, no drive letter.
bool is_plain_relative_path(std::string_view path);

}  // namespace argosy
