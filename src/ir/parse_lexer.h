#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace argosy {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,        // aten.silu.default
  kNumber,      // -1, 0.5, 1e-05, -inf, 0x7ff8
  kString,      // "…"
  kValueName,   // %x, %"odd name"
  kWeightName,  // @model.norm.weight
  kPunctuation,
  kInvalid,
};

/// One token of IR text. `text` points into the text, so a token also tells where it is.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;

  bool is(char c) const { return kind == TokenKind::kPunctuation && text.front() == c; }
  bool is(std::string_view word) const { return kind == TokenKind::kWord && text == word; }
  /// How messages name it.
  std::string describe() const;
};

/// Cuts IR text into tokens, one ahead. White space and comments ("#" to the end of the line) only separate. Never
/// fails: what is no token is kInvalid, and is reported by whoever meets it.
class Lexer {
 public:
  explicit Lexer(std::string_view text);

  const Token& token() const { return token_; }
  void advance();
  /// Goes back to a token seen before.
  void rewind(const Token& token);

  /// Instead of the current token, all text up to a ',' or a closing bracket outside of brackets and backquotes, or to
  /// the end of the line; spaces around it are cut off.
  std::string_view take_expression();
  /// Instead of the current token, the rest of its line, without a comment and spaces around.
  std::string_view take_line();

  size_t text_size() const { return text_.size(); }

  /// An error at a piece of the text: "3:14: message", the line and a caret below it.
  Error error_at(std::string_view where, ErrorCode code, std::string_view message, std::string hint = {}) const;
  Error error_at(std::string_view where, std::string_view message, std::string hint = {}) const {
    return error_at(where, ErrorCode::kInvalidInput, message, std::move(hint));
  }

  /// The bytes that a string token, or a name token with its sigil, stands for.
  Result<std::string> unquote(const Token& token) const;

 private:
  void lex();
  size_t string_end(size_t begin) const;
  void take(TokenKind kind, size_t begin, size_t end);

  std::string_view text_;
  size_t position_ = 0;  // behind the current token
  Token token_;
};

}  // namespace argosy
