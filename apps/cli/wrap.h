#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace argosy::cli {

/// The text with lines of at most so many columns, broken between words; what goes on is indented. A word that is
/// longer stays whole, and so does a line that begins with "Next:", which is a command to be copied.
std::string wrapped(std::string_view text, size_t columns);

}  // namespace argosy::cli
