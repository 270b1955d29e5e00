#pragma once

#include <string>
#include <vector>

#include "io/json.h"

namespace argosy::cli {

/// What `argosy explain` says of one graph: a title, and rows of a label and a text. A row without label goes on with
/// the one above.
class Explanation {
 public:
  explicit Explanation(std::string title) : title_(std::move(title)) {}
  const std::string& title() const { return title_; }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string text() const;
  /// An object of the title and the rows, in their order: a label may come again, as those of each method do.
  void write(JsonWriter& writer) const;

 private:
  std::string title_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace argosy::cli
