#include "io/json_locate.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"

namespace argosy {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Walks a text token by token. Each skip_… returns whether the token is well formed, and leaves at() where it is not.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}
  size_t at() const { return at_; }
  bool is_done() const { return at_ == text_.size(); }
  char peek() const { return is_done() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (is_done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (!is_done() && is_space(text_[at_])) ++at_;
  }

  bool skip_string() {
    if (!take('"')) return false;
    while (!is_done() && peek() != '"') {
      if (static_cast<unsigned char>(peek()) < 0x20) return false;
      if (take('\\')) {
        if (is_done() || std::string_view("\"\\/bfnrtu").find(peek()) == std::string_view::npos) return false;
        bool is_unicode = peek() == 'u';
        ++at_;
        if (is_unicode && !skip_hex()) return false;
      } else {
        ++at_;
      }
    }
    return take('"');
  }

  bool skip_number() {
    take('-');
    if (!take('0') && !skip_digits()) return false;
    if (take('.') && !skip_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return skip_digits();
    }
    return !is_digit(peek());
  }

  bool skip_scalar() {
    for (std::string_view word : {"true", "false", "null"}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return true;
      }
    }
    return peek() == '"' ? skip_string() : skip_number();
  }

 private:
  bool skip_digits() {
    size_t start = at_;
    while (is_digit(peek())) ++at_;
    return at_ > start;
  }
  bool skip_hex() {
    for (int i = 0; i < 4; ++i, ++at_) {
      if (std::string_view("0123456789abcdefABCDEF").find(peek()) == std::string_view::npos || is_done()) return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

size_t first_byte_that_is_not_utf8(std::string_view text) {
  // The longest valid prefix, by halves; a cut inside a character only makes it up to 3 bytes shorter.
  size_t valid = 0, invalid = text.size();
  while (invalid - valid > 1) {
    size_t middle = valid + (invalid - valid) / 2;
    size_t cut = middle;
    while (cut > valid && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    if (cut == valid) cut = middle;
    if (is_utf8(text.substr(valid, cut - valid))) {
      valid = cut;
    } else {
      invalid = cut;
    }
  }
  return valid;
}

}  // namespace

std::optional<size_t> locate_json_error(std::string_view text, size_t max_depth) {
  if (!is_utf8(text)) return first_byte_that_is_not_utf8(text);
  Walker walker(text);
  std::vector<char> open;  // closing brackets that are due
  bool needs_value = true;
  while (true) {
    walker.skip_space();
    if (needs_value) {
      char c = walker.peek();
      if (c == '{' || c == '[') {
        if (open.size() >= max_depth) return walker.at();
        walker.take(c);
        open.push_back(c == '{' ? '}' : ']');
        walker.skip_space();
        needs_value = walker.peek() != open.back();
        if (needs_value && c == '[') continue;
      } else if (walker.is_done() || !walker.skip_scalar()) {
        return walker.at();
      } else {
        needs_value = false;
      }
    }
    if (!needs_value) {
      walker.skip_space();
      if (open.empty()) return walker.is_done() ? std::nullopt : std::optional(walker.at());
      if (walker.take(open.back())) {
        open.pop_back();
        continue;
      }
      if (!walker.take(',')) return walker.at();
      walker.skip_space();
    }
    if (open.back() == '}') {
      if (!walker.skip_string()) return walker.at();
      walker.skip_space();
      if (!walker.take(':')) return walker.at();
    }
    needs_value = true;
  }
}

std::optional<std::string> widen_big_integers(std::string_view text) {
  std::string result;
  size_t copied = 0;
  Walker walker(text);
  while (!walker.is_done()) {
    char c = walker.peek();
    if (c == '"') {
      if (!walker.skip_string()) return std::nullopt;
    } else if (c == '-' || is_digit(c)) {
      size_t start = walker.at();
      if (!walker.skip_number()) return std::nullopt;
      std::string_view number = text.substr(start, walker.at() - start);
      if (number.size() < 19 || number.find_first_of(".eE") != std::string_view::npos) continue;
      uint64_t magnitude = 0;
      int64_t value = 0;
      const char* end = number.data() + number.size();
      if (std::from_chars(number.data(), end, magnitude).ec == std::errc() ||
          std::from_chars(number.data(), end, value).ec == std::errc()) {
        continue;
      }
      result += text.substr(copied, walker.at() - copied);
      result += ".0";
      copied = walker.at();
    } else {
      walker.take(c);
    }
  }
  if (copied == 0) return std::nullopt;
  result += text.substr(copied);
  return result;
}

}  // namespace argosy
