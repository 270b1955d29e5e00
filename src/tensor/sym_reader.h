#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/sym_node.h"

namespace argosy {

/// What the two readers of expression text share: position, limits, and building with the rules of types. A function
/// that fails records the first error and returns an invalid handle.
class SymReader {
 public:
  SymReader(SymStore& store, std::string_view text) : store_(store), text_(text), first_work_(store.work()) {}

 protected:
  /// Parentheses and calls inside each other; more than an expression of SymContext::kMaxDepth needs.
  static constexpr int kMaxNesting = 300;

  SymExpr fail_here(std::string message, std::string hint = {}) {
    return fail_with(ErrorCode::kInvalidInput, std::move(message), std::move(hint));
  }
  SymExpr fail_with(ErrorCode code, std::string message, std::string hint);
  bool has_failed() const { return error_.has_value(); }
  bool check_length();
  bool enter();
  void leave() { --nesting_; }

  void skip_spaces();
  bool at_end() const { return position_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  bool accept(char c);
  bool expect(char c);
  /// [A-Za-z_][A-Za-z0-9_]*, or "".
  std::string_view identifier();
  /// The text between a quote and the next one of its kind, where a backslash protects quotes and backslashes.
  std::optional<std::string> quoted_name();
  /// Digits, as a number of either sign.
  std::optional<int64_t> digits(bool is_negative);

  /// The canonical expression, after checking the operands' types and what the text has cost so far. The number of
  /// operands is right.
  SymExpr build(SymKind kind, std::span<const SymExpr> operands, std::string_view name = {});
  SymExpr check_cost(SymExpr built);
  Result<SymExpr> finish(SymExpr result);

  SymStore& store_;
  std::string_view text_;
  size_t position_ = 0;

 private:
  bool check_types(SymKind kind, std::span<const SymExpr> operands);

  int nesting_ = 0;
  uint64_t first_work_;
  std::optional<Error> error_;
};

bool is_identifier_start(char c);
bool is_identifier_part(char c);
/// The words of to_text: not names of functions, and symbols only in backquotes.
bool is_reserved_word(std::string_view name);

}  // namespace argosy
