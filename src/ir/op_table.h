#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "base/text.h"

namespace argosy {

/// Rows found by op name: rewrite rules, translations. Compiled-in families are spans over constant arrays, listed
/// explicitly where the table is made; one more family is filled at run time, by users' extensions. A row has a member
/// `op` (string_view or string) and is found in the order: families as listed, then added rows. Rows of one op may be
/// several; whether that is allowed is up to `unique`.
template <class Row>
class OpTable {
 public:
  enum class Duplicates : uint8_t { kRefuse, kAllow };

  OpTable(std::span<const std::span<const Row>> families, Duplicates duplicates) : duplicates_(duplicates) {
    for (std::span<const Row> family : families) {
      for (const Row& row : family) {
        bool is_added = insert(row);
        ARGOSY_CHECK(is_added, format("two rows for op {}", std::string_view(row.op)));
      }
    }
  }

  /// Adds a row at run time. The table keeps the row.
  Status add(Row row) {
    added_.push_back(std::move(row));
    if (insert(added_.back())) return {};
    std::string op(std::string_view(added_.back().op));
    added_.pop_back();
    return fail(ErrorCode::kInvalidInput, format("op {} has a row already", op), "remove one of the two");
  }

  /// The rows of an op, in order; empty if there is none.
  std::span<const Row* const> find(std::string_view op) const {
    auto found = rows_.find(std::string(op));
    if (found == rows_.end()) return {};
    return found->second;
  }

  size_t op_count() const { return rows_.size(); }

 private:
  bool insert(const Row& row) {
    std::vector<const Row*>& rows = rows_[std::string(std::string_view(row.op))];
    if (!rows.empty() && duplicates_ == Duplicates::kRefuse) return false;
    rows.push_back(&row);
    return true;
  }

  Duplicates duplicates_;
  std::unordered_map<std::string, std::vector<const Row*>> rows_;
  std::deque<Row> added_;  // the family that is filled at run time; a deque, so that rows stay where they are
};

}  // namespace argosy
