#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace argosy {

/// Text of unknown origin as part of a page: nothing in it is markup, and what is longer than `max_length` bytes is
/// cut.
std::string html_text(std::string_view text, size_t max_length = 400);

/// The start of a page that loads nothing and runs no scripts, up to its heading; it ends with kPageEnd. `style` is
/// CSS.
std::string page_start(std::string_view title, std::string_view heading, std::string_view style);
inline constexpr std::string_view kPageEnd = "</body></html>\n";

}  // namespace argosy
