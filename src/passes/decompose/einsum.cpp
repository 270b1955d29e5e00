#include <algorithm>
#include <map>

#include "passes/aten_builder.h"
#include "passes/aten_schemas.h"
#include "passes/decompose/families.h"

namespace argosy::decompose {
namespace {

/// A tensor whose dims have letters.
struct Term {
  ValueId tensor;
  std::string letters;
};

/// Letters of an equation: one string for each operand, and the result's. Dims of an ellipsis get letters of their own.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

/// The letter of the i-th dim from behind that an ellipsis stands for.
char hidden_letter(size_t from_behind) { return static_cast<char>('\x01' + from_behind); }

std::optional<std::string> letters_of(std::string_view text, size_t rank) {
  std::string letters;
  size_t dots = text.find("...");
  size_t named = text.size() - (dots == std::string_view::npos ? 0 : 3);
  if (named > rank || (dots == std::string_view::npos && named != rank)) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (size_t left = rank - named; left-- > 0;) letters += hidden_letter(left);
      i += 2;
    } else {
      letters += text[i];
    }
  }
  return letters;
}

std::optional<Equation> parse(AtenBuilder& f, std::string text, const ValueList& tensors) {
  std::erase(text, ' ');
  size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  Equation equation;
  std::map<char, int> count;
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t comma = left.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == tensors.size())) return std::nullopt;
    auto letters = letters_of(left.substr(0, comma), f.rank(tensors[i]));
    if (!letters) return std::nullopt;
    equation.operands.push_back(*letters);
    for (char letter : *letters) ++count[letter];
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
  }
  std::string hidden;
  for (const auto& [letter, times] : count) {
    if (letter < ' ') hidden.insert(hidden.begin(), letter);
  }
  if (arrow == std::string::npos) {
    equation.result = hidden;
    for (const auto& [letter, times] : count) {
      if (letter >= ' ' && times == 1) equation.result += letter;
    }
    return equation;
  }
  std::string_view right = std::string_view(text).substr(arrow + 2);
  size_t dots = right.find("...");
  if (dots == std::string_view::npos) {
    equation.result = right;
  } else {
    equation.result = std::string(right.substr(0, dots)) + hidden + std::string(right.substr(dots + 3));
  }
  return equation;
}

bool contains(std::string_view letters, char letter) { return letters.find(letter) != std::string_view::npos; }

Term ordered(AtenBuilder& f, const Term& term, std::string_view letters) {
  std::vector<int64_t> order;
  for (char letter : letters) order.push_back(static_cast<int64_t>(term.letters.find(letter)));
  return {f.permute(term.tensor, order), std::string(letters)};
}

/// Summed over the letters that neither the result nor another operand has.
Term summed(AtenBuilder& f, Term term, std::string_view needed) {
  std::vector<int64_t> dims;
  std::string left;
  for (size_t i = 0; i < term.letters.size(); ++i) {
    if (contains(needed, term.letters[i])) {
      left += term.letters[i];
    } else {
      dims.push_back(static_cast<int64_t>(i));
    }
  }
  if (!dims.empty()) term = {f.sum(term.tensor, dims, false), left};
  return term;
}

/// The product of two terms, summed over what is not needed any more: batch, rows and columns of a matmul.
Term multiplied(AtenBuilder& f, Term a, Term b, const std::string& needed) {
  a = summed(f, a, needed + b.letters);
  b = summed(f, b, needed + a.letters);
  std::string batch, rows, columns, inner;
  for (char letter : a.letters) {
    bool is_shared = contains(b.letters, letter);
    (is_shared ? (contains(needed, letter) ? batch : inner) : rows) += letter;
  }
  for (char letter : b.letters) {
    if (!contains(a.letters, letter)) columns += letter;
  }
  auto sizes = [&](const std::string& letters) {
    Sizes all;
    for (char letter : letters) {
      auto size = [&](const Term& term) -> std::optional<SymExpr> {
        size_t at = term.letters.find(letter);
        return at == std::string::npos ? std::nullopt : std::optional(f.shape(term.tensor)[at]);
      };
      std::optional<SymExpr> left = size(a), right = size(b);
      all.push_back(!left ? *right : right && left->as_integer() == 1 ? *right : *left);
    }
    return all;
  };
  auto product = [&](const std::string& letters) {
    Sizes all = sizes(letters);
    return all.empty() ? f.one() : f.symbols().mul(all);
  };
  // Where a dim of size 1 meets a longer one, it is spread.
  auto spread = [&](const Term& term) {
    return Term{f.expand(term.tensor, sizes(term.letters), {a.tensor, b.tensor}), term.letters};
  };
  const Term first = spread(a), second = spread(b);
  ValueId left = ordered(f, first, batch + rows + inner).tensor,
          right = ordered(f, second, batch + inner + columns).tensor;
  std::vector<ValueId> from = {first.tensor, second.tensor};
  left = f.reshape(left, {product(batch), product(rows), product(inner)}, from);
  right = f.reshape(right, {product(batch), product(inner), product(columns)}, from);
  std::string letters = batch + rows + columns;
  return {f.reshape(f.matmul(left, right), sizes(letters), from), letters};
}

bool decompose_einsum(AtenBuilder& f) {
  const auto* text = f.argument("equation").get_if<std::string>();
  const auto* tensors = f.argument("tensors").get_if<ValueList>();
  if (text == nullptr || tensors == nullptr || tensors->empty()) return false;
  std::optional<Equation> equation = parse(f, *text, *tensors);
  if (!equation) return false;
  std::vector<Term> terms;
  for (size_t i = 0; i < tensors->size(); ++i) {
    std::string sorted = equation->operands[i];
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) return false;  // a diagonal
    terms.push_back({(*tensors)[i], equation->operands[i]});
  }
  Term total = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string needed = equation->result;
    for (size_t j = i + 1; j < terms.size(); ++j) needed += terms[j].letters;
    total = multiplied(f, total, terms[i], needed);
  }
  total = summed(f, total, equation->result);
  if (total.letters.size() != equation->result.size()) return false;
  return f.replace(ordered(f, total, equation->result).tensor);
}

constexpr RewriteRule kEinsumRules[] = {
    {.op = "aten.einsum.default", .name = "decompose-einsum", .apply = write<decompose_einsum>},
};

}  // namespace

std::span<const RewriteRule> einsum() { return kEinsumRules; }

}  // namespace argosy::decompose
