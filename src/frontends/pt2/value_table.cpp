#include "frontends/pt2/value_table.h"

#include "base/text.h"

namespace argosy {

Status ValueTable::open(const JsonField& graph, std::string_view key, bool is_required) {
  key_ = key;
  table_ = graph.view().find(key);
  JsonField field = graph.member(key);
  if (!field.is_valid() && !is_required) return {};
  ARGOSY_TRY_STATUS(field.require_object());
  next_ = table_.members().begin();
  end_ = table_.members().end();
  return {};
}

Result<JsonView> ValueTable::find(const JsonField& graph, std::string_view name) {
  if (!has_index_ && next_ != end_) {
    auto [next_name, value] = *next_;
    if (next_name == name) {
      ++next_;
      return value;
    }
  }
  ARGOSY_TRY_STATUS(make_index(graph));
  auto found = index_.find(name);
  return found == index_.end() ? JsonView() : found->second;
}

Status ValueTable::make_index(const JsonField& graph) {
  if (has_index_) return {};
  has_index_ = true;
  index_.reserve(table_.is_object() ? table_.size() : 0);
  for (auto [name, value] : table_.members()) {
    if (!index_.emplace(name, value).second) return graph.member(key_).error(format("{} occurs twice", quoted(name)));
  }
  return {};
}

}  // namespace argosy
