// The text of sympy's srepr(): every expression is Head(argument, ...).
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "tensor/sym_reader.h"

namespace argosy {
namespace {

constexpr uint32_t kMaxSreprDepth = 1000;
constexpr size_t kAny = SIZE_MAX;
constexpr size_t kInt64Digits = 18;  // that many always fit; also the digits of a BigInteger's limb
constexpr size_t kMaxDigits = 1000;

/// A head that becomes a kind of its own. The first of a kind is the one that is written.
struct Head {
  std::string_view name;
  SymKind kind;
  size_t min_arguments;
  size_t max_arguments;
};

constexpr std::array kHeads = {
    Head{"Add", SymKind::kAdd, 1, kAny},
    Head{"Mul", SymKind::kMul, 1, kAny},
    Head{"Pow", SymKind::kPow, 2, 2},
    Head{"Min", SymKind::kMin, 1, kAny},
    Head{"Max", SymKind::kMax, 1, kAny},
    Head{"FloorDiv", SymKind::kFloorDiv, 2, 2},
    Head{"CleanDiv", SymKind::kFloorDiv, 2, 2},
    Head{"Mod", SymKind::kMod, 2, 2},
    Head{"PythonMod", SymKind::kMod, 2, 2},
    Head{"Equality", SymKind::kEq, 2, 2},
    Head{"Eq", SymKind::kEq, 2, 2},
    Head{"Unequality", SymKind::kNe, 2, 2},
    Head{"Ne", SymKind::kNe, 2, 2},
    Head{"StrictLessThan", SymKind::kLt, 2, 2},
    Head{"Lt", SymKind::kLt, 2, 2},
    Head{"LessThan", SymKind::kLe, 2, 2},
    Head{"Le", SymKind::kLe, 2, 2},
    Head{"StrictGreaterThan", SymKind::kGt, 2, 2},
    Head{"Gt", SymKind::kGt, 2, 2},
    Head{"GreaterThan", SymKind::kGe, 2, 2},
    Head{"Ge", SymKind::kGe, 2, 2},
    Head{"And", SymKind::kAnd, 1, kAny},
    Head{"Or", SymKind::kOr, 1, kAny},
    Head{"Not", SymKind::kNot, 1, 1},
    Head{"Where", SymKind::kIte, 3, 3},
    Head{"ITE", SymKind::kIte, 3, 3},
};

/// Constants of sympy that are neither numbers nor booleans here; written without parentheses.
constexpr std::array kConstants = {std::string_view("int_oo"), std::string_view("zoo"), std::string_view("pi"),
                                   std::string_view("E"), std::string_view("I")};
constexpr std::string_view kNegativeInfinity = "neg_int_oo";  // the function name that "-int_oo" gets

bool is_integer(SymExpr expression) { return SymStore::node(expression).type == SymType::kInt; }
bool is_never_negative(SymExpr expression) {
  return is_integer(expression) && SymStore::node(expression).assumed.min >= 0;
}

class SreprPrinter {
 public:
  std::string print(SymExpr expression) {
    print_node(expression);
    if (out_.size() > SymContext::kMaxTextLength) {
      out_.resize(SymContext::kMaxTextLength - 3);
      out_ += "...";
    }
    return std::move(out_);
  }

 private:
  void print_node(SymExpr expression) {
    if (out_.size() > SymContext::kMaxTextLength) return;
    const SymNode& node = SymStore::node(expression);
    if (node.depth > kMaxSreprDepth) {
      out_ += "...";
      return;
    }
    switch (node.kind) {
      case SymKind::kInteger: out_ += format("Integer({})", node.integer); return;
      case SymKind::kFloat: return print_float(node.real);
      case SymKind::kBoolean: out_ += node.integer != 0 ? "true" : "false"; return;
      case SymKind::kSymbol: return print_symbol(node);
      case SymKind::kMod: {
        // torch's Mod is only defined where no side is negative.
        bool is_plain = is_never_negative(node.operands[0]) && is_never_negative(node.operands[1]);
        return print_call(is_plain ? "Mod" : "PythonMod", node.operands);
      }
      case SymKind::kTrueDiv: {
        bool is_plain = is_integer(node.operands[0]) && is_integer(node.operands[1]);
        return print_call(is_plain ? "IntTrueDiv" : "FloatTrueDiv", node.operands);
      }
      case SymKind::kIte: return print_piecewise(&node);
      case SymKind::kCall: return print_function(node);
      default: break;
    }
    auto is_head = [&](const Head& candidate) { return candidate.kind == node.kind; };
    print_call(std::find_if(kHeads.begin(), kHeads.end(), is_head)->name, node.operands);
  }

  void print_call(std::string_view head, std::span<const SymExpr> arguments) {
    out_ += head;
    out_ += '(';
    bool is_first = true;
    for (SymExpr argument : arguments) {
      if (!is_first) out_ += ", ";
      is_first = false;
      print_node(argument);
    }
    out_ += ')';
  }

  void print_function(const SymNode& node) {
    if (node.operands.empty()) {
      if (node.name == kNegativeInfinity) {
        out_ += "-int_oo";
        return;
      }
      if (std::find(kConstants.begin(), kConstants.end(), node.name) != kConstants.end()) {
        out_ += node.name;
        return;
      }
    }
    if (big_integer_sign(node.name, node.operands) != 0) {
      out_ += format("Integer({}", SymStore::node(node.operands[0]).integer);
      for (SymExpr limb : node.operands.subspan(1)) {
        out_ += format("{:0{}}", std::abs(SymStore::node(limb).integer), kInt64Digits);
      }
      out_ += ')';
      return;
    }
    if (node.name == "Rational" && node.operands.size() == 2) {
      const SymNode& p = SymStore::node(node.operands[0]);
      const SymNode& q = SymStore::node(node.operands[1]);
      if (p.kind == SymKind::kInteger && q.kind == SymKind::kInteger) {
        out_ += format("Rational({}, {})", p.integer, q.integer);
        return;
      }
    }
    print_call(node.name, node.operands);
  }

  /// A chain of choices is one Piecewise, as sympy would make of it.
  void print_piecewise(const SymNode* node) {
    out_ += "Piecewise(";
    while (true) {
      print_call("ExprCondPair", std::array{node->operands[1], node->operands[0]});
      out_ += ", ";
      const SymNode& otherwise = SymStore::node(node->operands[2]);
      if (otherwise.kind != SymKind::kIte || out_.size() > SymContext::kMaxTextLength) break;
      node = &otherwise;
    }
    out_ += "ExprCondPair(";
    print_node(node->operands[2]);
    out_ += ", true))";
  }

  void print_float(double value) {
    if (std::isnan(value) || std::isinf(value)) {
      out_ += std::isnan(value) ? "nan" : value < 0 ? "-oo" : "oo";
      return;
    }
    std::string digits = format("{:.17g}", value);
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    out_ += format("Float('{}', precision=53)", digits);
  }

  void print_symbol(const SymNode& node) {
    // Python's quoting: double quotes only around a name with single ones.
    bool has_single = node.name.find('\'') != std::string_view::npos;
    bool has_double = node.name.find('"') != std::string_view::npos;
    char quote = has_single && !has_double ? '"' : '\'';
    out_ += "Symbol(";
    out_ += quote;
    for (char c : node.name) {
      if (c == quote || c == '\\') out_ += '\\';
      out_ += c;
    }
    out_ += quote;
    const SymAssumptions& assumptions = node.assumptions;
    if (assumptions.is_positive) out_ += ", positive=True";
    if (assumptions.is_integer) out_ += ", integer=True";
    if (assumptions.is_nonnegative) out_ += ", nonnegative=True";
    if (assumptions.is_real) out_ += ", real=True";
    out_ += ')';
  }

  std::string out_;
};

class SreprReader : public SymReader {
 public:
  using SymReader::SymReader;

  Result<SymExpr> read() {
    SymExpr result;
    if (check_length()) result = expression();
    return finish(result);
  }

 private:
  SymExpr expression() {
    if (!enter()) return {};
    SymExpr result = node();
    leave();
    return result;
  }

  SymExpr node() {
    skip_spaces();
    bool is_negative = accept('-');
    if (peek() >= '0' && peek() <= '9') {
      auto value = digits(is_negative);
      return value ? store_.integer(*value) : SymExpr();
    }
    std::string_view name = identifier();
    if (name.empty()) return fail_here("expected a name like Integer or Symbol");
    if (name == "oo") return store_.real(is_negative ? -HUGE_VAL : HUGE_VAL);
    if (is_negative && name != "int_oo") return fail_here("expected a number after '-'");
    if (is_negative) return store_.call(kNegativeInfinity, {});
    if (name == "nan") return store_.real(std::nan(""));
    if (name == "true" || name == "True") return store_.boolean(true);
    if (name == "false" || name == "False") return store_.boolean(false);
    bool is_constant = std::find(kConstants.begin(), kConstants.end(), name) != kConstants.end();
    if (!accept('(')) {
      if (is_constant) return store_.call(name, {});
      return fail_here(format("'{}' without arguments", name), "expressions are read in the form that srepr gives");
    }
    if (name == "Symbol") return symbol();
    if (name == "Integer") return integer();
    if (name == "Float") return float_number();
    if (name == "Piecewise") return piecewise();
    return call(name);
  }

  SymExpr integer() {
    bool is_negative = accept('-');
    size_t count = 0;
    while (peek(count) >= '0' && peek(count) <= '9') ++count;
    SymExpr result = count > kInt64Digits ? big_integer(count, is_negative) : SymExpr();
    if (has_failed()) return {};
    if (!result.is_valid()) {
      auto value = digits(is_negative);
      if (!value) return {};
      result = store_.integer(*value);
    }
    return expect(')') ? result : SymExpr();
  }

  /// An integer beyond int64, or an invalid handle without error if the digits are of a smaller one.
  SymExpr big_integer(size_t count, bool is_negative) {
    if (count > kMaxDigits) {
      return fail_with(ErrorCode::kUnsupportedFeature, format("integer of {} digits", count),
                       "bound the dynamic dimension that it comes from");
    }
    std::vector<SymExpr> limbs;
    int64_t limb = 0;
    for (size_t left = count; left > 0; --left) {
      limb = limb * 10 + (peek(count - left) - '0');
      if ((left - 1) % kInt64Digits != 0) continue;
      if (limb != 0 || !limbs.empty()) limbs.push_back(store_.integer(is_negative ? -limb : limb));
      limb = 0;
    }
    if (big_integer_sign(kBigInteger, limbs) == 0) return {};
    position_ += count;
    return store_.call(kBigInteger, limbs);
  }

  std::optional<std::string> string_argument() {
    skip_spaces();
    if (peek() == '\'' || peek() == '"') return quoted_name();
    fail_here("expected a text in quotes");
    return std::nullopt;
  }

  SymExpr symbol() {
    auto name = string_argument();
    if (!name) return {};
    SymAssumptions assumptions{.is_integer = false};
    while (!accept(')')) {
      if (!expect(',')) return {};
      skip_spaces();
      std::string_view key = identifier();
      if (key.empty() || !expect('=')) return fail_here("expected an assumption like integer=True");
      skip_spaces();
      std::string_view value = identifier();
      if (value != "True" && value != "False") return fail_here("expected True or False");
      bool is_true = value == "True";
      if (key == "integer") assumptions.is_integer = is_true;
      if (key == "positive") assumptions.is_positive = is_true;
      if (key == "nonnegative") assumptions.is_nonnegative = is_true;
      if (key == "real") assumptions.is_real = is_true;
    }
    return check_cost(store_.symbol(*name, assumptions));
  }

  SymExpr float_number() {
    auto digits_text = string_argument();
    if (!digits_text) return {};
    double value = 0;
    const char* end = digits_text->data() + digits_text->size();
    auto [stop, status] = std::from_chars(digits_text->data(), end, value);
    if (status != std::errc() || stop != end) return fail_here(format("malformed number {}", quoted(*digits_text)));
    if (accept(',')) {
      skip_spaces();
      if (identifier() != "precision" || !expect('=')) return fail_here("expected precision=53");
      skip_spaces();
      auto precision = digits(false);
      if (!precision) return {};
      if (*precision != 53) {
        return fail_with(ErrorCode::kUnsupportedFeature, format("float of {} bits", *precision),
                         "only doubles (precision=53) are read");
      }
    }
    if (!expect(')')) return {};
    return store_.real(value);
  }

  SymExpr piecewise() {
    std::vector<std::pair<SymExpr, SymExpr>> pairs;  // value, condition
    while (!accept(')')) {
      if (!pairs.empty() && !expect(',')) return {};
      skip_spaces();
      std::string_view head = identifier();
      if (!head.empty() && head != "ExprCondPair") return fail_here("expected ExprCondPair");
      if (!expect('(')) return {};
      SymExpr value = expression();
      if (!value.is_valid() || !expect(',')) return {};
      SymExpr condition = expression();
      if (!condition.is_valid() || !expect(')')) return {};
      pairs.emplace_back(value, condition);
    }
    if (pairs.empty()) return fail_here("Piecewise without pieces");
    // Where no condition holds sympy's value is nan.
    bool is_total = pairs.back().second == store_.boolean(true);
    SymExpr result = is_total ? pairs.back().first : store_.real(std::nan(""));
    if (is_total) pairs.pop_back();
    for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
      result = build(SymKind::kIte, std::array{pair->second, pair->first, result});
      if (!result.is_valid()) return {};
    }
    return result;
  }

  SymExpr call(std::string_view name) {
    std::vector<SymExpr> arguments;
    while (!accept(')')) {
      if (!arguments.empty() && !expect(',')) return {};
      SymExpr argument = expression();
      if (!argument.is_valid()) return {};
      arguments.push_back(argument);
    }
    auto head = std::find_if(kHeads.begin(), kHeads.end(), [&](const Head& known) { return known.name == name; });
    if (head != kHeads.end()) {
      if (arguments.size() < head->min_arguments || arguments.size() > head->max_arguments) {
        return fail_here(format("{} with {} arguments", name, arguments.size()));
      }
      return build(head->kind, arguments);
    }
    if (SymExpr special = special_call(name, arguments); special.is_valid() || has_failed()) return special;
    if (!SymContext::is_function_name(name)) return fail_here(format("'{}' is not a function", name));
    return build(SymKind::kCall, arguments, name);
  }

  /// Functions that are other ones in disguise, for the arguments where they are.
  SymExpr special_call(std::string_view name, std::span<const SymExpr> arguments) {
    if (name == "Identity" && arguments.size() == 1) return arguments[0];
    if (arguments.size() != 2) return {};
    SymExpr a = arguments[0];
    SymExpr b = arguments[1];
    const SymNode& constant = SymStore::node(b);
    bool has_constant = constant.kind == SymKind::kInteger;
    bool are_integers = is_integer(a) && is_integer(b);
    if (name == "Rational" && has_constant && constant.integer == 0) return fail_here("Rational with denominator 0");
    if (name == (are_integers ? "IntTrueDiv" : "FloatTrueDiv")) return build(SymKind::kTrueDiv, arguments);
    if (!are_integers || !has_constant) return {};
    if (name == "PowByNatural" && constant.integer >= 0) return build(SymKind::kPow, arguments);
    if (name == "CeilDiv" && constant.integer > 0) {
      SymExpr dividend = build(SymKind::kAdd, std::array{a, store_.integer(constant.integer - 1)});
      return dividend.is_valid() ? build(SymKind::kFloorDiv, std::array{dividend, b}) : dividend;
    }
    if ((name == "LShift" || name == "RShift") && constant.integer >= 0 && constant.integer < 63) {
      SymExpr factor = store_.integer(int64_t{1} << constant.integer);
      return build(name == "LShift" ? SymKind::kMul : SymKind::kFloorDiv, std::array{a, factor});
    }
    return {};
  }
};

}  // namespace

std::string SymContext::to_srepr(SymExpr expression) const {
  return expression.is_valid() ? SreprPrinter().print(expression) : "?";
}

Result<SymExpr> SymContext::parse_srepr(std::string_view text) { return SreprReader(*store_, text).read(); }

}  // namespace argosy
