#include "ir/parse_reader.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace argosy {
namespace {

std::optional<int64_t> to_integer(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool TextReader::accept(char punctuation) {
  if (!token().is(punctuation)) return false;
  lexer_.advance();
  return true;
}

bool TextReader::accept(std::string_view word) {
  if (!token().is(word)) return false;
  lexer_.advance();
  return true;
}

Status TextReader::expect(char punctuation) {
  if (!accept(punctuation)) return unexpected(format("'{}'", punctuation));
  return {};
}

Status TextReader::expect(std::string_view word) {
  if (!accept(word)) return unexpected(format("'{}'", word));
  return {};
}

tl::unexpected<Error> TextReader::unexpected(std::string_view expected) const {
  return error_at(token(), format("expected {}, found {}", expected, token().describe()));
}

tl::unexpected<Error> TextReader::error_at(const Token& token, std::string_view message, std::string hint) const {
  return fail(lexer_.error_at(token.text, message, std::move(hint)));
}

Result<std::string> TextReader::read_string() {
  if (token().kind != TokenKind::kString) return unexpected("a string");
  ARGOSY_TRY(std::string text, lexer_.unquote(token()));
  lexer_.advance();
  return text;
}

Result<std::string> TextReader::read_word(std::string_view what) {
  if (token().kind == TokenKind::kString) return read_string();
  if (token().kind != TokenKind::kWord) return unexpected(what);
  std::string word(token().text);
  lexer_.advance();
  return word;
}

Result<std::string> TextReader::read_name(TokenKind kind, std::string_view what) {
  if (token().kind != kind) return unexpected(what);
  ARGOSY_TRY(std::string name, lexer_.unquote(token()));
  if (name.empty()) return error_at(token(), "a name must not be empty");
  lexer_.advance();
  return name;
}

Result<int64_t> TextReader::read_integer(int64_t min, int64_t max) {
  if (token().kind != TokenKind::kNumber) return unexpected("an integer");
  std::optional<int64_t> value = to_integer(token().text);
  if (!value) return error_at(token(), format("{} is not an integer of 64 bits", token().describe()));
  if (*value < min || *value > max) {
    return error_at(token(), format("{} is not between {} and {}", *value, min, max));
  }
  lexer_.advance();
  return *value;
}

Result<uint32_t> TextReader::read_index() {
  ARGOSY_TRY(int64_t value, read_integer(0, int64_t{UINT32_MAX} - 1));
  return static_cast<uint32_t>(value);
}

Result<double> TextReader::read_double() {
  if (token().is("nan")) return read_nan();
  bool is_infinite = token().is("inf") || (token().kind == TokenKind::kNumber && token().text == "-inf");
  std::string_view text = token().text;
  if (is_infinite) {
    lexer_.advance();
    return text.front() == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  if (token().kind != TokenKind::kNumber) return unexpected("a floating-point number");
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  char first = text[text.front() == '-' && text.size() > 1 ? 1 : 0];  // from_chars would read words like "-nan", too
  if (error != std::errc() || end != text.data() + text.size() || first < '0' || first > '9') {
    return error_at(token(), format("{} is not a floating-point number of 64 bits", token().describe()));
  }
  if (to_integer(text)) {
    return error_at(token(), format("{} is an integer where a floating-point number is expected", text),
                    format("write {}.0", text));
  }
  lexer_.advance();
  return value;
}

// "nan", or "nan:0x…" with all bits.
Result<double> TextReader::read_nan() {
  lexer_.advance();
  if (!accept(':')) return std::numeric_limits<double>::quiet_NaN();
  std::string_view text = token().text;
  uint64_t bits = 0;
  bool is_hex = token().kind == TokenKind::kNumber && text.size() == 18 && text.starts_with("0x");
  if (is_hex) {
    auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    is_hex = error == std::errc() && end == text.data() + text.size();
  }
  auto value = std::bit_cast<double>(bits);
  if (!is_hex || !std::isnan(value)) return unexpected("0x and the 16 digits of a NaN");
  lexer_.advance();
  return value;
}

void TextReader::use(std::shared_ptr<SymContext> symbols) {
  symbols_ = std::move(symbols);
  expressions_.clear();
}

Result<SymExpr> TextReader::read_expression() {
  std::string_view text = lexer_.take_expression();
  if (text == "?") return SymExpr();
  if (auto integer = to_integer(text)) return symbols_->integer(*integer);
  auto [known, is_new] = expressions_.try_emplace(text);
  if (!is_new) return known->second;
  Result<SymExpr> expression = symbols_->parse_text(text);
  if (!expression) {
    return fail(
        lexer_.error_at(text, format("bad expression: {}", expression.error().message), expression.error().hint));
  }
  known->second = *expression;
  return *expression;
}

Result<std::vector<SymExpr>> TextReader::read_dims() {
  ARGOSY_TRY_STATUS(expect('['));
  std::vector<SymExpr> dims;
  if (accept(']')) return dims;
  do {
    ARGOSY_TRY(SymExpr dim, read_expression());
    dims.push_back(dim);
  } while (accept(','));
  ARGOSY_TRY_STATUS(expect(']'));
  return dims;
}

Result<ValueType> TextReader::read_type() {
  Token name = token();
  if (name.kind != TokenKind::kWord) return unexpected("a type");
  lexer_.advance();
  if (token().is('[')) {
    std::optional<DType> dtype = dtype_from_text(name.text);
    if (!dtype)
      return error_at(name, format("unknown dtype {}", name.describe()), "dtypes are f32, bf16, i64 and the like");
    TensorType type{.dtype = *dtype, .shape = {}, .strides = {}};
    ARGOSY_TRY(type.shape, read_dims());
    if (accept("strides")) {
      ARGOSY_TRY(type.strides, read_dims());
    }
    return type;
  }
  SymType type;
  if (name.is("float")) {
    type.kind = SymType::Kind::kFloat;
  } else if (name.is("bool")) {
    type.kind = SymType::Kind::kBool;
  } else if (!name.is("int")) {
    return error_at(name, format("unknown type {}", name.describe()),
                    "a type is a dtype with a shape, as in f32[2, 3], or int, float or bool");
  }
  if (accept('(')) {
    ARGOSY_TRY(type.expression, read_expression());
    ARGOSY_TRY_STATUS(expect(')'));
  }
  return type;
}

}  // namespace argosy
