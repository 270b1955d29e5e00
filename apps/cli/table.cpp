#include "table.h"

#include <algorithm>

#include "base/text.h"

namespace argosy::cli {
namespace {

/// Columns on screen, for UTF-8 text without wide characters.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  row.resize(alignment_.size());
  for (std::string& text : row) text = printable(text);
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    text.append(static_cast<size_t>(indent_), ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      std::string padding(widths[i] - width_of(row[i]), ' ');
      bool is_last = i + 1 == row.size();
      if (alignment_[i] == 'r') text += padding;
      text += row[i];
      if (alignment_[i] == 'l' && !is_last) text += padding;
      if (!is_last) text += "  ";
    }
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    bool is_control = byte < 0x20 || byte == 0x7f;
    // The second half of the control characters, U+0080 to U+009F, takes two bytes in UTF-8.
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      is_control = true;
      byte = static_cast<unsigned char>(text[++i]);
    }
    if (is_control) {
      result += format("\\x{:02x}", byte);
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace argosy::cli
