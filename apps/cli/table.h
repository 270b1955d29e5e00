#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/counts.h"  // most tables have numbers

namespace argosy::cli {

/// Rows of text in aligned columns, two spaces apart. The last column is not padded. Texts are made printable().
class Table {
 public:
  /// One character per column: 'l' or 'r', for which side its texts are aligned to.
  explicit Table(std::string_view alignment, int indent = 2) : alignment_(alignment), indent_(indent) {}
  void add(std::vector<std::string> row);
  bool is_empty() const { return rows_.empty(); }
  std::string text() const;

 private:
  std::string alignment_;
  int indent_;
  std::vector<std::vector<std::string>> rows_;
};

/// The text without anything that a terminal would obey: control characters read "\\x1b". For names that come from
/// files.
std::string printable(std::string_view text);

}  // namespace argosy::cli
