#include "wrap.h"

#include <algorithm>

namespace argosy::cli {
namespace {

/// Of a character of UTF-8, its first byte alone counts.
bool is_first_byte(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

/// How many bytes an escape code takes that sets colours: "\x1b[1;31m". 0: there is none.
size_t length_of_code(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

void add_line(std::string_view line, size_t columns, std::string& text) {
  if (line.starts_with("Next:")) {
    text += line;
    return;
  }
  const std::string indent(std::min(line.find_first_not_of(' '), line.size()) + 2, ' ');
  size_t width = 0, space = std::string_view::npos, width_at_space = 0, start = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (const size_t code = length_of_code(line.substr(i)); code > 0) {
      i += code - 1;
      continue;
    }
    if (line[i] == ' ' && i >= indent.size()) {
      space = i;
      width_at_space = width;
    }
    if (is_first_byte(line[i])) ++width;
    if (width <= columns || space == std::string_view::npos || line[i] == ' ') continue;
    text += line.substr(start, space - start);
    text += '\n';
    text += indent;
    start = space + 1;
    width = indent.size() + width - width_at_space - 1;
    space = std::string_view::npos;
  }
  text += line.substr(start);
}

}  // namespace

std::string wrapped(std::string_view text, size_t columns) {
  std::string result;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size());
    add_line(line, columns, result);
    if (!text.empty()) {
      result += '\n';
      text.remove_prefix(1);
    }
  }
  return result;
}

}  // namespace argosy::cli
