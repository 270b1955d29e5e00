#pragma once

#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "frontends/pt2/json_field.h"

namespace argosy {

/// The types of one kind of values, by name. torch lists them in the order in which graphs define them, so that the
/// next one asked for is mostly the next in the list; an index is made only when that fails.
class ValueTable {
 public:
  Status open(const JsonField& graph, std::string_view key, bool is_required);
  std::string_view key() const { return key_; }
  /// Invalid if the table has no such name.
  Result<JsonView> find(const JsonField& graph, std::string_view name);
  /// Whether the name occurs; a table that contradicts itself holds every name.
  bool contains(const JsonField& graph, std::string_view name) { return !make_index(graph) || index_.contains(name); }

 private:
  Status make_index(const JsonField& graph);

  std::string_view key_;
  JsonView table_;
  JsonView::MemberIterator next_ = JsonView().members().begin(), end_ = JsonView().members().end();
  bool has_index_ = false;
  std::unordered_map<std::string_view, JsonView> index_;
};

}  // namespace argosy
