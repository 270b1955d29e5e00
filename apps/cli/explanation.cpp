#include "explanation.h"

#include "table.h"

namespace argosy::cli {

std::string Explanation::text() const {
  Table table("ll");
  for (const std::vector<std::string>& row : rows_) table.add(row);
  return title_ + "\n" + table.text();
}

void Explanation::write(JsonWriter& writer) const {
  writer.begin_object().key("what").value(title_).key("rows").begin_array();
  for (size_t i = 0; i < rows_.size();) {
    writer.begin_object().key("label").value(rows_[i][0]).key("texts").begin_array();
    do writer.value(rows_[i++][1]);
    while (i < rows_.size() && rows_[i][0].empty());
    writer.end_array().end_object();
  }
  writer.end_array().end_object();
}

}  // namespace argosy::cli
