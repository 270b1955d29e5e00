#include "ir/parse_lexer.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "ir/text_syntax.h"

namespace argosy {
namespace {

// How much of a long line is shown on either side of the caret.
constexpr size_t kShownBefore = 50;
constexpr size_t kShownAfter = 30;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string Token::describe() const {
  if (kind == TokenKind::kEnd) return "the end of the text";
  if (kind == TokenKind::kInvalid && text.find('"') != std::string_view::npos) return "a string without its end";
  if (kind == TokenKind::kString) return "the string " + quoted(text.substr(1, text.size() - 2), 60);
  return quoted(text, 60);
}

Lexer::Lexer(std::string_view text) : text_(text) { lex(); }

void Lexer::advance() { lex(); }

void Lexer::rewind(const Token& token) {
  token_ = token;
  position_ = static_cast<size_t>(token.text.data() - text_.data()) + token.text.size();
}

void Lexer::take(TokenKind kind, size_t begin, size_t end) {
  token_ = {kind, text_.substr(begin, end - begin)};
  position_ = end;
}

// Behind the closing quote of the string that begins at `begin`; `begin` itself if it has none on its line.
size_t Lexer::string_end(size_t begin) const {
  for (size_t i = begin + 1; i < text_.size() && text_[i] != '\n'; ++i) {
    if (text_[i] == '"') return i + 1;
    if (text_[i] == '\\') ++i;
  }
  return begin;
}

void Lexer::lex() {
  size_t begin = position_;
  while (begin < text_.size() && (is_space(text_[begin]) || text_[begin] == '#')) {
    if (text_[begin] == '#') {
      begin = std::min(text_.find('\n', begin), text_.size());
    } else {
      ++begin;
    }
  }
  if (begin == text_.size()) return take(TokenKind::kEnd, begin, begin);
  char c = text_[begin];
  size_t end = begin + 1;
  if (is_letter(c)) {
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    return take(TokenKind::kWord, begin, end);
  }
  if (is_digit(c) || c == '-') {
    // A sign belongs to the number at its start and behind an exponent's letter.
    while (end < text_.size() && (is_name_char(text_[end]) || ((text_[end] == '-' || text_[end] == '+') &&
                                                               (text_[end - 1] == 'e' || text_[end - 1] == 'E')))) {
      ++end;
    }
    return take(end == begin + 1 && c == '-' ? TokenKind::kInvalid : TokenKind::kNumber, begin, end);
  }
  if (c == '"') {
    end = string_end(begin);
    if (end == begin) return take(TokenKind::kInvalid, begin, std::min(text_.find('\n', begin), text_.size()));
    return take(TokenKind::kString, begin, end);
  }
  if (c == '%' || c == '@') {
    TokenKind kind = c == '%' ? TokenKind::kValueName : TokenKind::kWeightName;
    if (end < text_.size() && text_[end] == '"') {
      size_t close = string_end(end);
      if (close == end) return take(TokenKind::kInvalid, begin, std::min(text_.find('\n', begin), text_.size()));
      return take(kind, begin, close);
    }
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    return take(end == begin + 1 ? TokenKind::kInvalid : kind, begin, end);
  }
  if (std::string_view("()[]{},=:?").find(c) != std::string_view::npos) {
    return take(TokenKind::kPunctuation, begin, end);
  }
  while (end < text_.size() && is_continuation(text_[end])) ++end;
  take(TokenKind::kInvalid, begin, end);
}

std::string_view Lexer::take_expression() {
  size_t begin = static_cast<size_t>(token_.text.data() - text_.data());
  size_t end = begin;
  size_t depth = 0;
  for (; end < text_.size() && text_[end] != '\n' && text_[end] != '#'; ++end) {
    char c = text_[end];
    if (c == '`') {  // a symbol with an odd name
      for (++end; end < text_.size() && text_[end] != '`'; ++end) {
        if (text_[end] == '\\') ++end;
      }
      if (end >= text_.size()) break;
      continue;
    }
    if (c == '(' || c == '[') ++depth;
    if (depth == 0 && (c == ',' || c == ')' || c == ']')) break;
    if (c == ')' || c == ']') --depth;
  }
  end = std::min(end, text_.size());
  position_ = end;
  lex();
  return trimmed(text_.substr(begin, end - begin));
}

std::string_view Lexer::take_line() {
  size_t begin = static_cast<size_t>(token_.text.data() - text_.data());
  size_t end = std::min(text_.find('\n', begin), text_.size());
  std::string_view line = text_.substr(begin, end - begin);
  position_ = end;
  lex();
  return trimmed(line.substr(0, line.find('#')));
}

Error Lexer::error_at(std::string_view where, ErrorCode code, std::string_view message, std::string hint) const {
  auto offset = static_cast<size_t>(where.data() - text_.data());
  std::string_view before = text_.substr(0, offset);
  size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  size_t line_end = std::min(text_.find('\n', offset), text_.size());
  auto line_number = std::count(before.begin(), before.end(), '\n') + 1;

  size_t shown_start = offset - std::min(offset - line_start, kShownBefore);
  while (shown_start > line_start && is_continuation(text_[shown_start])) --shown_start;
  size_t shown_end = std::min(line_end, offset + kShownAfter);
  while (shown_end < line_end && is_continuation(text_[shown_end])) ++shown_end;
  std::string shown(text_.substr(shown_start, shown_end - shown_start));
  size_t caret = 0;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (shown_start + i < offset && !is_continuation(shown[i])) ++caret;
    if (static_cast<unsigned char>(shown[i]) < 0x20 || shown[i] == 0x7f) shown[i] = ' ';
  }
  std::string_view left = shown_start > line_start ? "…" : "";
  caret += left.empty() ? 0 : 1;
  return Error(code,
               format("{}:{}: {}\n    {}{}{}\n    {}^", line_number, offset - line_start + 1, message, left, shown,
                      shown_end < line_end ? "…" : "", std::string(caret, ' ')),
               std::move(hint));
}

Result<std::string> Lexer::unquote(const Token& token) const {
  std::string_view text = token.text;
  if (token.kind != TokenKind::kString) text.remove_prefix(1);  // the sigil
  if (text.front() != '"') return std::string(text);
  text = text.substr(1, text.size() - 2);
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    char c = text[++i];  // the lexer saw that something follows
    if (c == 'n') {
      result += '\n';
    } else if (c == 't') {
      result += '\t';
    } else if (c == '"' || c == '\\') {
      result += c;
    } else if (c == 'x' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
      result += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      return fail(
          error_at(text.substr(i - 1), "unknown escape in a string", R"(use \" \\ \n \t or \x and two digits)"));
    }
  }
  return result;
}

}  // namespace argosy
