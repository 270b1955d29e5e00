#include "frontends/pt2/guards.h"

#include <cctype>
#include <charconv>
#include <string>
#include <unordered_map>

#include "base/text.h"

namespace argosy {
namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMaxLength = 1 << 16;

using InputsByName = std::unordered_map<std::string_view, const InputSpec*>;

InputsByName index_inputs(const Component& component) {
  InputsByName inputs;
  for (const InputSpec& input : component.inputs) inputs.emplace(input.name, &input);
  return inputs;
}

struct InputDim {
  const InputSpec* input;
  int dim;
};

/// What a chain of comparisons or a conjunction consists of, for those that say something about one dim.
struct Comparison {
  SymKind relation;
  SymExpr left, right;
  std::optional<InputDim> left_dim, right_dim;  // if a side is just a size of an input
};

/// Recursive descent over one Python expression. A reader that meets something else returns nullopt, and all give up.
class GuardParser {
 public:
  GuardParser(std::string_view text, const Component& component, const InputsByName& inputs)
      : text_(text), component_(component), inputs_(inputs), symbols_(*component.symbols) {}

  std::optional<SymExpr> parse() {
    if (text_.size() > kMaxLength) return std::nullopt;
    std::optional<SymExpr> condition = parse_or(0);
    skip_spaces();
    if (!condition || position_ != text_.size()) return std::nullopt;
    return condition;
  }

  /// The parts of the guard, if it is a conjunction of plain comparisons; empty otherwise.
  const std::vector<Comparison>& comparisons() const { return comparisons_; }
  bool is_conjunction() const { return is_conjunction_; }

 private:
  void skip_spaces() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
  }

  bool accept(std::string_view token) {
    skip_spaces();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }

  bool accept_word(std::string_view word) {
    skip_spaces();
    std::string_view rest = text_.substr(position_);
    if (!rest.starts_with(word)) return false;
    if (rest.size() > word.size() && (std::isalnum(static_cast<unsigned char>(rest[word.size()])) != 0)) return false;
    position_ += word.size();
    return true;
  }

  std::optional<SymExpr> parse_or(int depth) {
    std::optional<SymExpr> left = parse_and(depth);
    while (left && accept_word("or")) {
      is_conjunction_ = false;
      std::optional<SymExpr> right = parse_and(depth);
      if (!right) return std::nullopt;
      left = symbols_.logical_or(*left, *right);
    }
    return left;
  }

  std::optional<SymExpr> parse_and(int depth) {
    std::optional<SymExpr> left = parse_not(depth);
    while (left && accept_word("and")) {
      std::optional<SymExpr> right = parse_not(depth);
      if (!right) return std::nullopt;
      left = symbols_.logical_and(*left, *right);
    }
    return left;
  }

  std::optional<SymExpr> parse_not(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    if (!accept_word("not")) return parse_comparison(depth);
    is_conjunction_ = false;
    std::optional<SymExpr> operand = parse_not(depth + 1);
    if (!operand || !is_boolean(*operand)) return std::nullopt;
    return symbols_.logical_not(*operand);
  }

  std::optional<SymKind> accept_relation() {
    if (accept("==")) return SymKind::kEq;
    if (accept("!=")) return SymKind::kNe;
    if (accept("<=")) return SymKind::kLe;
    if (accept(">=")) return SymKind::kGe;
    if (accept("<")) return SymKind::kLt;
    if (accept(">")) return SymKind::kGt;
    return std::nullopt;
  }

  // Either a comparison (2 <= x <= 8 is two of them), or something in parentheses that is a condition itself.
  std::optional<SymExpr> parse_comparison(int depth) {
    last_dim_.reset();
    std::optional<SymExpr> left = parse_sum(depth);
    if (!left) return std::nullopt;
    std::optional<InputDim> left_dim = last_dim_;
    std::optional<SymKind> relation = accept_relation();
    if (!relation) return left;
    std::optional<SymExpr> condition;
    while (relation) {
      last_dim_.reset();
      std::optional<SymExpr> right = parse_sum(depth);
      if (!right || is_boolean(*left) || is_boolean(*right)) return std::nullopt;
      comparisons_.push_back({*relation, *left, *right, left_dim, last_dim_});
      SymExpr part = symbols_.compare(*relation, *left, *right);
      condition = condition ? symbols_.logical_and(*condition, part) : part;
      left = right;
      left_dim = last_dim_;
      relation = accept_relation();
    }
    return condition;
  }

  std::optional<SymExpr> parse_sum(int depth) {
    std::optional<SymExpr> left = parse_product(depth);
    while (left) {
      bool is_sum = accept("+");
      if (!is_sum && !accept("-")) return left;
      std::optional<SymExpr> right = parse_product(depth);
      last_dim_.reset();
      if (!right || is_boolean(*left) || is_boolean(*right)) return std::nullopt;
      left = is_sum ? symbols_.add(*left, *right) : symbols_.sub(*left, *right);
    }
    return left;
  }

  std::optional<SymExpr> parse_product(int depth) {
    std::optional<SymExpr> left = parse_unary(depth);
    while (left) {
      char operation = accept("//") ? '/' : accept("%") ? '%' : '*';
      if (operation == '*' && !accept_times()) return left;
      std::optional<SymExpr> right = parse_unary(depth);
      last_dim_.reset();
      if (!right || is_boolean(*left) || is_boolean(*right)) return std::nullopt;
      left = operation == '/'   ? symbols_.floor_div(*left, *right)
             : operation == '%' ? symbols_.mod(*left, *right)
                                : symbols_.mul(*left, *right);
    }
    return left;
  }

  bool accept_times() {
    skip_spaces();
    return !text_.substr(position_).starts_with("**") && accept("*");
  }

  std::optional<SymExpr> parse_unary(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    if (accept("-")) {
      std::optional<SymExpr> operand = parse_unary(depth + 1);
      last_dim_.reset();
      if (!operand || is_boolean(*operand)) return std::nullopt;
      return symbols_.mul(symbols_.integer(-1), *operand);
    }
    if (accept("(")) {
      std::optional<SymExpr> inside = parse_or(depth + 1);
      if (!inside || !accept(")")) return std::nullopt;
      return inside;
    }
    bool is_min = accept("min(");
    if (is_min || accept("max(")) {
      std::optional<SymExpr> left = parse_sum(depth + 1);
      if (!left || !accept(",")) return std::nullopt;
      std::optional<SymExpr> right = parse_sum(depth + 1);
      if (!right || !accept(")") || is_boolean(*left) || is_boolean(*right)) return std::nullopt;
      last_dim_.reset();
      return is_min ? symbols_.min(*left, *right) : symbols_.max(*left, *right);
    }
    if (accept("L[")) return parse_size();
    return parse_integer();
  }

  std::optional<SymExpr> parse_integer() {
    skip_spaces();
    int64_t value = 0;
    const char* start = text_.data() + position_;
    auto [end, error] = std::from_chars(start, text_.data() + text_.size(), value);
    if (error != std::errc() || end == start || *start == '-') return std::nullopt;
    position_ += static_cast<size_t>(end - start);
    if (position_ < text_.size() && text_[position_] == '.') return std::nullopt;
    return symbols_.integer(value);
  }

  // L['a']['b'][0].c.size()[1]: torch names the flattened input a_b_0_c.
  std::optional<SymExpr> parse_size() {
    std::string name;
    if (!parse_key(name)) return std::nullopt;
    while (true) {
      if (accept(".size()[")) break;
      if (accept("[")) {
        if (!parse_key(name)) return std::nullopt;
      } else if (accept(".")) {
        size_t start = position_;
        while (position_ < text_.size() && is_name_char(text_[position_])) ++position_;
        if (start == position_) return std::nullopt;
        name.append("_").append(text_.substr(start, position_ - start));
      } else {
        return std::nullopt;
      }
    }
    std::optional<SymExpr> index = parse_integer();
    if (!index || !accept("]")) return std::nullopt;
    int64_t dim = index->as_integer().value_or(-1);
    auto found = inputs_.find(name);
    if (found == inputs_.end() || !found->second->value.is_valid()) return std::nullopt;
    const TensorType* type = component_.entry()[found->second->value].tensor();
    if (type == nullptr || dim < 0 || dim >= static_cast<int64_t>(type->shape.size())) return std::nullopt;
    last_dim_ = {found->second, static_cast<int>(dim)};
    return type->shape[static_cast<size_t>(dim)];
  }

  static bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  // 'name'] or 0], behind the opening bracket.
  bool parse_key(std::string& name) {
    if (!name.empty()) name += '_';
    bool is_quoted = accept("'");
    size_t start = position_;
    while (position_ < text_.size() && is_name_char(text_[position_])) ++position_;
    if (start == position_) return false;
    name.append(text_.substr(start, position_ - start));
    return (!is_quoted || accept("'")) && accept("]");
  }

  static bool is_boolean(SymExpr expression) {
    switch (expression.kind()) {
      case SymKind::kBoolean:
      case SymKind::kEq:
      case SymKind::kNe:
      case SymKind::kLt:
      case SymKind::kLe:
      case SymKind::kGt:
      case SymKind::kGe:
      case SymKind::kAnd:
      case SymKind::kOr:
      case SymKind::kNot: return true;
      default: return false;
    }
  }

  std::string_view text_;
  const Component& component_;
  const InputsByName& inputs_;
  SymContext& symbols_;
  size_t position_ = 0;
  bool is_conjunction_ = true;
  std::optional<InputDim> last_dim_;
  std::vector<Comparison> comparisons_;
};

SymKind mirrored(SymKind relation) {
  switch (relation) {
    case SymKind::kLt: return SymKind::kGt;
    case SymKind::kLe: return SymKind::kGe;
    case SymKind::kGt: return SymKind::kLt;
    case SymKind::kGe: return SymKind::kLe;
    default: return relation;
  }
}

void narrow(SymContext& symbols, SymExpr symbol, SymKind relation, int64_t bound) {
  SymRange range = symbols.range(symbol);
  switch (relation) {
    case SymKind::kLe: range.max = std::min(range.max, bound); break;
    case SymKind::kGe: range.min = std::max(range.min, bound); break;
    case SymKind::kLt:
      if (bound != INT64_MIN) range.max = std::min(range.max, bound - 1);
      break;
    case SymKind::kGt:
      if (bound != INT64_MAX) range.min = std::max(range.min, bound + 1);
      break;
    default: return;
  }
  // A guard that leaves nothing contradicts the ranges; then neither is to be trusted, and the ranges stay.
  if (range.min <= range.max) symbols.set_range(symbol, range);
}

void learn(Component& component, const Comparison& comparison, std::string_view text) {
  SymContext& symbols = *component.symbols;
  SymExpr left = comparison.left, right = comparison.right;
  SymKind relation = comparison.relation;
  std::optional<InputDim> dim = comparison.left_dim;
  if (left.as_integer() && !comparison.left_dim) {
    std::swap(left, right);
    relation = mirrored(relation);
    dim = comparison.right_dim;
  }
  std::optional<int64_t> bound = right.as_integer();
  if (relation == SymKind::kEq) {
    if (bound && dim && left.as_integer() == bound) {
      component.specialized.push_back({.input = dim->input->name,
                                       .dim = dim->dim,
                                       .value = *bound,
                                       .reason = format("the trace assumed {}", text)});
    }
    symbols.unify(left, right);
    return;
  }
  if (bound && left.kind() == SymKind::kSymbol) narrow(symbols, left, relation, *bound);
}

}  // namespace

std::optional<SymExpr> parse_guard(std::string_view text, const Component& component) {
  InputsByName inputs = index_inputs(component);
  return GuardParser(text, component, inputs).parse();
}

void add_guards(Component& component, const std::vector<std::string_view>& texts) {
  InputsByName inputs = index_inputs(component);
  for (std::string_view text : texts) {
    GuardParser parser(text, component, inputs);
    std::optional<SymExpr> condition = parser.parse();
    component.guards.push_back({.text = std::string(text), .condition = condition.value_or(SymExpr())});
    if (!condition || !parser.is_conjunction()) continue;
    for (const Comparison& comparison : parser.comparisons()) learn(component, comparison, text);
  }
}

}  // namespace argosy
