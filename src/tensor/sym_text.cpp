// Infix text: the printer and its inverse, an operator-precedence reader.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "tensor/sym_reader.h"

namespace argosy {
namespace {

constexpr uint32_t kMaxTextDepth = 1000;

/// How tightly operators bind; the same numbers in the printer and in the reader.
enum Level : int {
  kOrLevel = 1,
  kAndLevel,
  kNotLevel,
  kCompareLevel,
  kAddLevel,
  kMulLevel,
  kNegateLevel,
  kPowLevel,
  kAtomLevel
};

std::string_view operator_text(SymKind kind) {
  switch (kind) {
    case SymKind::kFloorDiv: return " // ";
    case SymKind::kMod: return " % ";
    case SymKind::kTrueDiv: return " / ";
    case SymKind::kEq: return " == ";
    case SymKind::kNe: return " != ";
    case SymKind::kLt: return " < ";
    case SymKind::kLe: return " <= ";
    case SymKind::kGt: return " > ";
    case SymKind::kGe: return " >= ";
    case SymKind::kAnd: return " and ";
    case SymKind::kOr: return " or ";
    default: return "";
  }
}

int level_of(const SymNode& node) {
  switch (node.kind) {
    case SymKind::kInteger: return node.integer < 0 ? kNegateLevel : kAtomLevel;
    case SymKind::kFloat: return std::signbit(node.real) ? kNegateLevel : kAtomLevel;
    case SymKind::kAdd: return kAddLevel;
    case SymKind::kMul:
    case SymKind::kFloorDiv:
    case SymKind::kMod:
    case SymKind::kTrueDiv: return kMulLevel;
    case SymKind::kPow: return kPowLevel;
    case SymKind::kEq:
    case SymKind::kNe:
    case SymKind::kLt:
    case SymKind::kLe:
    case SymKind::kGt:
    case SymKind::kGe: return kCompareLevel;
    case SymKind::kAnd: return kAndLevel;
    case SymKind::kOr: return kOrLevel;
    case SymKind::kNot: return kNotLevel;
    default: return kAtomLevel;
  }
}

class TextPrinter {
 public:
  std::string print(SymExpr expression) {
    print_at(expression, 0);
    if (out_.size() > SymContext::kMaxTextLength) {
      out_.resize(SymContext::kMaxTextLength - 3);
      out_ += "...";
    }
    return std::move(out_);
  }

 private:
  void print_at(SymExpr expression, int level) {
    // Sub-expressions are shared, so their text can be exponentially longer than the expression.
    if (out_.size() > SymContext::kMaxTextLength) return;
    const SymNode& node = SymStore::node(expression);
    if (node.depth > kMaxTextDepth) {
      out_ += "...";
      return;
    }
    bool needs_parentheses = level_of(node) < level;
    if (needs_parentheses) out_ += '(';
    print_node(node);
    if (needs_parentheses) out_ += ')';
  }

  void print_node(const SymNode& node) {
    switch (node.kind) {
      case SymKind::kInteger: out_ += std::to_string(node.integer); return;
      case SymKind::kFloat: out_ += format_double(node.real); return;
      case SymKind::kBoolean: out_ += node.integer != 0 ? "true" : "false"; return;
      case SymKind::kSymbol: return print_symbol(node.name);
      case SymKind::kAdd: return print_sum(node);
      case SymKind::kMul: return print_product(node);
      case SymKind::kPow:
        print_at(node.operands[0], kAtomLevel);
        out_ += "**";
        return print_at(node.operands[1], kAtomLevel);
      case SymKind::kMin: return print_call("min", node);
      case SymKind::kMax: return print_call("max", node);
      case SymKind::kIte: return print_call("ite", node);
      case SymKind::kCall: return print_call(node.name, node);
      case SymKind::kNot: out_ += "not "; return print_at(node.operands[0], kAtomLevel);
      case SymKind::kFloorDiv:
      case SymKind::kMod:
      case SymKind::kTrueDiv: return print_chain(node, kNegateLevel);
      default: return print_chain(node, level_of(node) + 1);
    }
  }

  void print_symbol(std::string_view name) {
    if (SymContext::is_function_name(name)) {
      out_ += name;
      return;
    }
    out_ += '`';
    for (char c : name) {
      if (c == '`' || c == '\\') out_ += '\\';
      out_ += c;
    }
    out_ += '`';
  }

  void print_sum(const SymNode& node) {
    bool is_first = true;
    for (SymExpr operand : node.operands) {
      const SymNode& term = SymStore::node(operand);
      int64_t sign_of = term.kind == SymKind::kInteger ? term.integer : term.coefficient;
      // The smallest int64 has no positive twin to subtract.
      bool is_subtracted = !is_first && sign_of < 0 && sign_of != INT64_MIN;
      if (!is_first) out_ += is_subtracted ? " - " : " + ";
      is_first = false;
      if (!is_subtracted) {
        print_at(operand, kMulLevel);
      } else if (term.kind == SymKind::kInteger) {
        out_ += std::to_string(-term.integer);
      } else {
        print_scaled(term, -term.coefficient);
      }
    }
  }

  void print_product(const SymNode& node) {
    const SymNode& first =
        SymStore::node(node.monic->kind == SymKind::kMul ? node.monic->operands[0] : SymStore::handle(node.monic));
    // "-1.5" and "-(a + b)*c" would be read as something else first.
    bool has_plain_start = first.kind != SymKind::kFloat && first.kind != SymKind::kAdd;
    if (node.coefficient == -1 && has_plain_start) {
      out_ += '-';
      return print_scaled(node, 1);
    }
    print_scaled(node, node.coefficient);
  }

  void print_scaled(const SymNode& node, int64_t coefficient) {
    if (coefficient != 1) out_ += std::to_string(coefficient) + '*';
    if (node.monic->kind != SymKind::kMul) return print_at(SymStore::handle(node.monic), kNegateLevel);
    bool is_first = true;
    for (SymExpr factor : node.monic->operands) {
      if (!is_first) out_ += '*';
      is_first = false;
      print_at(factor, kNegateLevel);
    }
  }

  void print_chain(const SymNode& node, int operand_level) {
    bool is_first = true;
    for (SymExpr operand : node.operands) {
      if (!is_first) out_ += operator_text(node.kind);
      is_first = false;
      print_at(operand, operand_level);
    }
  }

  void print_call(std::string_view name, const SymNode& node) {
    out_ += name;
    out_ += '(';
    bool is_first = true;
    for (SymExpr operand : node.operands) {
      if (!is_first) out_ += ", ";
      is_first = false;
      print_at(operand, 0);
    }
    out_ += ')';
  }

  std::string out_;
};

/// An operator as it is read. Prefix operators take one operand.
struct Operator {
  std::string_view text;
  SymKind kind;
  int level;
  bool is_prefix = false;
  bool is_subtraction = false;
};

// Longer ones first where one begins with another.
constexpr std::array kOperators = {
    Operator{"**", SymKind::kPow, kPowLevel},    Operator{"//", SymKind::kFloorDiv, kMulLevel},
    Operator{"==", SymKind::kEq, kCompareLevel}, Operator{"!=", SymKind::kNe, kCompareLevel},
    Operator{"<=", SymKind::kLe, kCompareLevel}, Operator{">=", SymKind::kGe, kCompareLevel},
    Operator{"<", SymKind::kLt, kCompareLevel},  Operator{">", SymKind::kGt, kCompareLevel},
    Operator{"+", SymKind::kAdd, kAddLevel},     Operator{"-", SymKind::kAdd, kAddLevel, false, true},
    Operator{"*", SymKind::kMul, kMulLevel},     Operator{"%", SymKind::kMod, kMulLevel},
    Operator{"/", SymKind::kTrueDiv, kMulLevel}, Operator{"and", SymKind::kAnd, kAndLevel},
    Operator{"or", SymKind::kOr, kOrLevel},
};
constexpr Operator kNegate{"-", SymKind::kMul, kNegateLevel, true, false};
constexpr Operator kNot{"not", SymKind::kNot, kNotLevel, true, false};

bool is_chain(SymKind kind) {
  return kind == SymKind::kAdd || kind == SymKind::kMul || kind == SymKind::kAnd || kind == SymKind::kOr;
}

class TextReader : public SymReader {
 public:
  using SymReader::SymReader;

  Result<SymExpr> read() {
    SymExpr result;
    if (check_length()) result = expression();
    return finish(result);
  }

 private:
  /// One level of parentheses: operands and operators on two stacks, recursion only into parentheses and calls.
  SymExpr expression() {
    if (!enter()) return {};
    std::vector<SymExpr> operands;
    std::vector<Operator> operators;
    while (true) {
      if (!prefix_and_operand(operands, operators)) return {};
      auto next = binary_operator();
      if (!next) break;
      // Operators that bind tighter are done; so are equal ones, unless they continue a chain or bind to the right.
      while (!operators.empty() && operators.back().level >= next->level) {
        const Operator& last = operators.back();
        if (last.level == next->level) {
          bool continues = last.kind == next->kind && (is_chain(next->kind) || next->kind == SymKind::kPow);
          if (continues) break;
          if (next->level == kCompareLevel) return fail_here("chained comparison", "join comparisons with 'and'");
        }
        if (!reduce(operands, operators)) return {};
      }
      operators.push_back(*next);
    }
    while (!operators.empty()) {
      if (!reduce(operands, operators)) return {};
    }
    leave();
    return operands[0];
  }

  bool prefix_and_operand(std::vector<SymExpr>& operands, std::vector<Operator>& operators) {
    while (true) {
      skip_spaces();
      if (at_end()) {
        fail_here("expected an operand");
        return false;
      }
      if (peek() == '-') {
        ++position_;
        skip_spaces();
        size_t start = position_;
        if (SymExpr literal = number(true); literal.is_valid() || has_failed()) {
          // -2**n is -(2**n), any other literal takes the sign.
          skip_spaces();
          if (has_failed()) return false;
          if (!text_.substr(position_).starts_with("**")) {
            operands.push_back(literal);
            return true;
          }
          position_ = start;
        }
        operators.push_back(kNegate);
        continue;
      }
      size_t start = position_;
      if (identifier() == "not") {
        operators.push_back(kNot);
        continue;
      }
      position_ = start;
      SymExpr operand = primary();
      if (!operand.is_valid()) return false;
      operands.push_back(operand);
      return true;
    }
  }

  std::optional<Operator> binary_operator() {
    skip_spaces();
    std::string_view rest = text_.substr(position_);
    for (const Operator& candidate : kOperators) {
      if (!rest.starts_with(candidate.text)) continue;
      bool is_word = is_identifier_start(candidate.text[0]);
      if (is_word && rest.size() > candidate.text.size() && is_identifier_part(rest[candidate.text.size()])) continue;
      position_ += candidate.text.size();
      return candidate;
    }
    return std::nullopt;
  }

  /// Applies the last operator, with all before it that are one chain with it.
  bool reduce(std::vector<SymExpr>& operands, std::vector<Operator>& operators) {
    Operator last = operators.back();
    if (last.is_prefix) {
      operators.pop_back();
      SymExpr operand = operands.back();
      operands.back() = negated_or_not(last, operand);
      return operands.back().is_valid();
    }
    size_t count = 1;
    if (is_chain(last.kind)) {
      while (count < operators.size() && is_same_chain(operators[operators.size() - 1 - count], last)) ++count;
    }
    auto first = operands.end() - static_cast<std::ptrdiff_t>(count + 1);
    if (last.kind == SymKind::kAdd) {
      for (size_t i = 0; i < count; ++i) {
        if (!operators[operators.size() - count + i].is_subtraction) continue;
        SymExpr& subtracted = *(first + static_cast<std::ptrdiff_t>(i + 1));
        subtracted = negated_or_not(kNegate, subtracted);
        if (!subtracted.is_valid()) return false;
      }
    }
    SymExpr result = build(last.kind, std::span<const SymExpr>(&*first, count + 1));
    operands.erase(first, operands.end());
    operands.push_back(result);
    operators.resize(operators.size() - count, kNot);
    return result.is_valid();
  }

  static bool is_same_chain(const Operator& a, const Operator& b) { return a.kind == b.kind && !a.is_prefix; }

  SymExpr negated_or_not(const Operator& prefix, SymExpr operand) {
    if (prefix.kind == SymKind::kNot) return build(SymKind::kNot, std::array{operand});
    return build(SymKind::kMul, std::array{store_.integer(-1), operand});
  }

  SymExpr primary() {
    char c = peek();
    if (c == '(') {
      ++position_;
      SymExpr inner = expression();
      if (!inner.is_valid() || !expect(')')) return {};
      return inner;
    }
    if (c == '`') {
      auto name = quoted_name();
      return name ? check_cost(store_.symbol(*name, {})) : SymExpr();
    }
    if (SymExpr literal = number(false); literal.is_valid() || has_failed()) return literal;
    std::string_view name = identifier();
    if (name.empty()) return fail_here("expected an operand");
    if (name == "true" || name == "false") return store_.boolean(name == "true");
    if (accept('(')) return call(name);
    if (is_reserved_word(name)) {
      return fail_here(format("'{}' where an operand is needed", name), "write a symbol of that name in backquotes");
    }
    return check_cost(store_.symbol(name, {}));
  }

  SymExpr call(std::string_view name) {
    std::vector<SymExpr> arguments;
    while (!accept(')')) {
      if (!arguments.empty() && !expect(',')) return {};
      SymExpr argument = expression();
      if (!argument.is_valid()) return {};
      arguments.push_back(argument);
    }
    if (name == "min" || name == "max") {
      if (arguments.empty()) return fail_here(format("{} without arguments", name));
      return build(name == "min" ? SymKind::kMin : SymKind::kMax, arguments);
    }
    if (name == "ite") {
      if (arguments.size() != 3) return fail_here(format("ite takes 3 arguments, not {}", arguments.size()));
      return build(SymKind::kIte, arguments);
    }
    if (!SymContext::is_function_name(name)) return fail_here(format("'{}' is not a function", name));
    if (name == "Add" || name == "Mul") return build(name == "Add" ? SymKind::kAdd : SymKind::kMul, arguments);
    return build(SymKind::kCall, arguments, name);
  }

  /// A literal, or an invalid handle without error if there is none.
  SymExpr number(bool is_negative) {
    double sign = is_negative ? -1 : 1;
    size_t start = position_;
    if (is_identifier_start(peek())) {
      std::string_view word = identifier();
      if (word == "inf") return store_.real(sign * std::numeric_limits<double>::infinity());
      if (word == "nan") return store_.real(std::numeric_limits<double>::quiet_NaN());
      position_ = start;
      return {};
    }
    if (peek() < '0' || peek() > '9') return {};
    size_t end = position_;
    auto skip_digits = [&] {
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    };
    skip_digits();
    bool is_float = false;
    if (end < text_.size() && text_[end] == '.') {
      is_float = true;
      ++end;
      skip_digits();
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      is_float = true;
      ++end;
      if (end < text_.size() && (text_[end] == '+' || text_[end] == '-')) ++end;
      skip_digits();
    }
    if (end < text_.size() && is_identifier_start(text_[end])) return fail_here("malformed number");
    if (!is_float) {
      auto value = digits(is_negative);
      return value ? store_.integer(*value) : SymExpr();
    }
    double value = 0;
    auto [stop, status] = std::from_chars(text_.data() + start, text_.data() + end, value);
    if (status != std::errc() || stop != text_.data() + end) return fail_here("malformed number");
    position_ = end;
    return store_.real(sign * value);
  }
};

}  // namespace

std::string SymContext::to_text(SymExpr expression) const {
  return expression.is_valid() ? TextPrinter().print(expression) : "?";
}

Result<SymExpr> SymContext::parse_text(std::string_view text) { return TextReader(*store_, text).read(); }

}  // namespace argosy
