#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argosy {

/// Text formatting for the whole project (GCC 12 has no std::format). An object and no function: for arguments of std,
/// newer standard libraries would offer their own as well.
struct Format {
  template <typename... Values>
  std::string operator()(fmt::format_string<Values...> text, Values&&... values) const {
    return fmt::vformat(text, fmt::make_format_args(values...));
  }
};
inline constexpr Format format;  // NOLINT(readability-identifier-naming): it is called like a function

/// "1.5 GB": decimal units, three significant digits.
std::string format_bytes(uint64_t bytes);

/// The text in double quotes, with what would break a line or a quote or is not UTF-8 escaped, and long text cut (not
/// inside a character); for messages that show input of unknown origin.
std::string quoted(std::string_view text, size_t max_length = 120);
// Exact matches, so that std::quoted (found by argument type once <iomanip> is included) is never the better one.
inline std::string quoted(const std::string& text, size_t max_length = 120) {
  return quoted(std::string_view(text), max_length);
}
inline std::string quoted(const char* text, size_t max_length = 120) {
  return quoted(std::string_view(text), max_length);
}
inline std::string quoted(std::string& text, size_t max_length = 120) {
  return quoted(std::string_view(text), max_length);
}

/// In ASCII, whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether the bytes are well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// Whether it is a name that extensions may register things by: small letters, digits and _, at most 64, no digit
/// first.
bool is_registered_name(std::string_view text);
/// The first names of a list, quoted: "a", "b" and 3 more.
std::string first_names(const std::vector<std::string>& names, size_t shown);

/// The shortest decimal text that reads back to the same double. Always has a '.', an exponent, or is inf/-inf/nan.
std::string format_double(double value);

}  // namespace argosy
