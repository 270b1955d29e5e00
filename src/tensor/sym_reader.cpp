#include "tensor/sym_reader.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace argosy {
namespace {

/// Operands that building may look at for one text; the largest expressions of real models need a thousandth.
constexpr uint64_t kMaxWork = uint64_t{8} << 20;
constexpr size_t kMaxNameLength = 1024;

/// Heads of srepr that are never calls here; Add and Mul are, when their constants overflow.
bool is_srepr_head(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "Symbol",     "Integer",           "Float",    "Piecewise", "ExprCondPair", "Identity",    "Pow",  "Min",
      "Max",        "FloorDiv",          "CleanDiv", "Mod",       "PythonMod",    "Equality",    "Eq",   "Ne",
      "Unequality", "StrictLessThan",    "Lt",       "LessThan",  "Le",           "GreaterThan", "Ge",   "Gt",
      "And",        "StrictGreaterThan", "Or",       "Not",       "Where",        "oo",          "True", "False",
      "ITE",
  };
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool is_number_type(SymType type) { return type == SymType::kInt || type == SymType::kReal; }

}  // namespace

bool is_identifier_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_identifier_part(char c) { return is_identifier_start(c) || (c >= '0' && c <= '9'); }

bool is_reserved_word(std::string_view name) {
  static constexpr std::string_view kWords[] = {"min", "max", "ite", "and", "or", "not", "true", "false", "inf", "nan"};
  return std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

bool SymContext::is_function_name(std::string_view name) {
  return !name.empty() && is_identifier_start(name[0]) && std::all_of(name.begin(), name.end(), is_identifier_part) &&
         !is_reserved_word(name) && !is_srepr_head(name);
}

SymExpr SymReader::fail_with(ErrorCode code, std::string message, std::string hint) {
  if (!error_) {
    // Where it happened: an offset, and the text from there.
    std::string_view rest = text_.substr(std::min(position_, text_.size()));
    std::string where = rest.empty() ? "at the end" : format("at offset {}, before {}", position_, quoted(rest, 40));
    error_ = Error(code, format("{} in a symbolic expression, {}", message, where), std::move(hint));
  }
  return {};
}

bool SymReader::check_length() {
  if (text_.size() <= SymContext::kMaxTextLength) return true;
  fail_with(ErrorCode::kUnsupportedFeature,
            format("text of {} bytes where at most {} are read", text_.size(), SymContext::kMaxTextLength),
            "fix more of the dynamic dimensions so that sizes become simpler");
  return false;
}

bool SymReader::enter() {
  if (++nesting_ <= kMaxNesting) return true;
  fail_with(ErrorCode::kUnsupportedFeature, format("nesting deeper than {}", kMaxNesting),
            "fix more of the dynamic dimensions so that sizes become simpler");
  return false;
}

void SymReader::skip_spaces() {
  while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++position_;
}

bool SymReader::accept(char c) {
  skip_spaces();
  if (at_end() || peek() != c) return false;
  ++position_;
  return true;
}

bool SymReader::expect(char c) {
  if (accept(c)) return true;
  fail_here(format("expected '{}'", c));
  return false;
}

std::string_view SymReader::identifier() {
  if (!is_identifier_start(peek())) return {};
  size_t start = position_;
  while (is_identifier_part(peek())) ++position_;
  if (position_ - start > kMaxNameLength) {
    fail_here(format("name longer than {} bytes", kMaxNameLength));
    return {};
  }
  return text_.substr(start, position_ - start);
}

std::optional<std::string> SymReader::quoted_name() {
  char quote = text_[position_++];
  std::string name;
  while (peek() != quote) {
    char c = peek();
    if (c == '\\') {
      c = peek(1);
      if (c != '\\' && c != '\'' && c != '"' && c != '`') {
        fail_here("unknown escape in a name", "only quotes and backslashes can be escaped");
        return std::nullopt;
      }
      ++position_;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fail_here(at_end() ? "name without closing quote" : "control character in a name");
      return std::nullopt;
    }
    name += c;
    ++position_;
    if (name.size() > kMaxNameLength) {
      fail_here(format("name longer than {} bytes", kMaxNameLength));
      return std::nullopt;
    }
  }
  ++position_;
  if (!name.empty()) return name;
  fail_here("empty name");
  return std::nullopt;
}

std::optional<int64_t> SymReader::digits(bool is_negative) {
  size_t start = position_;
  while (peek() >= '0' && peek() <= '9') ++position_;
  if (position_ == start) {
    fail_here("expected an integer");
    return std::nullopt;
  }
  Int128 value = 0;
  for (char c : text_.substr(start, position_ - start)) {
    value = value * 10 + (c - '0');
    if (value <= Int128{INT64_MAX} + (is_negative ? 1 : 0)) continue;
    fail_with(ErrorCode::kUnsupportedFeature, "integer that does not fit in 64 bits",
              "bound the dynamic dimension that it comes from");
    return std::nullopt;
  }
  return static_cast<int64_t>(is_negative ? -value : value);
}

bool SymReader::check_types(SymKind kind, std::span<const SymExpr> operands) {
  auto type_of = [](SymExpr operand) { return SymStore::node(operand).type; };
  auto is_number = [&](SymExpr operand) { return is_number_type(type_of(operand)); };
  auto is_condition = [&](SymExpr operand) { return type_of(operand) == SymType::kBool; };
  bool has_numbers = std::any_of(operands.begin(), operands.end(), is_number);
  bool has_conditions = std::any_of(operands.begin(), operands.end(), is_condition);
  switch (kind) {
    case SymKind::kCall: return true;
    case SymKind::kAnd:
    case SymKind::kOr:
    case SymKind::kNot:
      if (has_numbers) fail_here("a number where a condition is needed");
      return !has_numbers;
    case SymKind::kIte: {
      if (is_number(operands[0])) {
        fail_here("a number where a condition is needed");
        return false;
      }
      bool is_mixed = (is_number(operands[1]) && is_condition(operands[2])) ||
                      (is_condition(operands[1]) && is_number(operands[2]));
      if (is_mixed) fail_here("a choice between a number and a condition");
      return !is_mixed;
    }
    case SymKind::kEq:
    case SymKind::kNe:
      if (has_numbers && has_conditions) fail_here("a number compared with a condition");
      return !(has_numbers && has_conditions);
    default:
      if (has_conditions) fail_here("a condition where a number is needed");
      return !has_conditions;
  }
}

SymExpr SymReader::build(SymKind kind, std::span<const SymExpr> operands, std::string_view name) {
  if (!check_types(kind, operands)) return {};
  SymExpr built;
  switch (kind) {
    case SymKind::kAdd: built = store_.add(operands); break;
    case SymKind::kMul: built = store_.mul(operands); break;
    case SymKind::kPow: built = store_.pow(operands[0], operands[1]); break;
    case SymKind::kMin:
    case SymKind::kMax: built = store_.min_max(kind, operands); break;
    case SymKind::kFloorDiv: built = store_.floor_div(operands[0], operands[1]); break;
    case SymKind::kMod: built = store_.mod(operands[0], operands[1]); break;
    case SymKind::kTrueDiv: built = store_.true_div(operands[0], operands[1]); break;
    case SymKind::kAnd:
    case SymKind::kOr: built = store_.and_or(kind, operands); break;
    case SymKind::kNot: built = store_.logical_not(operands[0]); break;
    case SymKind::kIte: built = store_.ite(operands[0], operands[1], operands[2]); break;
    case SymKind::kCall: built = store_.call(name, operands); break;
    default: built = store_.compare(kind, operands[0], operands[1]); break;
  }
  return check_cost(built);
}

SymExpr SymReader::check_cost(SymExpr built) {
  static constexpr const char* kHint = "fix more of the dynamic dimensions so that sizes become simpler";
  if (SymStore::node(built).depth > SymContext::kMaxDepth) {
    return fail_with(ErrorCode::kUnsupportedFeature, format("nesting deeper than {}", SymContext::kMaxDepth), kHint);
  }
  if (store_.work() - first_work_ > kMaxWork) {
    return fail_with(ErrorCode::kUnsupportedFeature, "more terms than can be simplified", kHint);
  }
  return built;
}

Result<SymExpr> SymReader::finish(SymExpr result) {
  if (!has_failed()) {
    skip_spaces();
    if (!at_end()) {
      fail_here("text after the end", text_.ends_with("...") ? "the text was too long to be written in full" : "");
    }
  }
  if (has_failed()) return fail(std::move(*error_));
  return result;
}

}  // namespace argosy
