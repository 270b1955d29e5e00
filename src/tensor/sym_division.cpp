#include <algorithm>
#include <numeric>

#include "tensor/sym_node.h"

namespace argosy {
namespace {

bool is_constant(SymExpr expression, int64_t value) {
  const SymNode& node = SymStore::node(expression);
  return node.kind == SymKind::kInteger && node.integer == value;
}

bool are_integers(SymExpr a, SymExpr b) {
  return SymStore::node(a).type == SymType::kInt && SymStore::node(b).type == SymType::kInt;
}

/// How often a factor stands in a product.
int64_t exponent_of(SymExpr base, std::span<const SymStore::Factor> factors) {
  for (const auto& factor : factors) {
    if (factor.base == base) return factor.exponent;
  }
  return 0;
}

Int128 absolute(Int128 value) { return value < 0 ? -value : value; }

}  // namespace

SymExpr SymStore::true_div(SymExpr a, SymExpr b) { return make(SymKind::kTrueDiv, std::vector{a, b}); }

SymExpr SymStore::floor_div(SymExpr a, SymExpr b) {
  auto unevaluated = [&] { return make(SymKind::kFloorDiv, std::vector{a, b}); };
  if (!are_integers(a, b) || is_constant(b, 0)) return unevaluated();
  if (is_constant(a, 0) || is_constant(b, 1)) return a;
  if (is_constant(b, -1)) return mul(b, a);
  if (a == b) return integer(1);
  SymRange quotients = interval_floor_div(node(a).assumed, node(b).assumed);
  if (is_single(quotients)) return integer(quotients.min);
  // floor(floor(x / y) / z) is floor(x / (y*z)) for positive z.
  if (node(a).kind == SymKind::kFloorDiv && node(b).assumed.min >= 1) {
    SymExpr divisor = mul(node(a).operands[1], b);
    if (node(divisor).kind != SymKind::kCall) return floor_div(node(a).operands[0], divisor);
  }
  if (node(b).kind == SymKind::kInteger) return floor_div_by_constant(a, node(b).integer);
  if (auto quotient = floor_div_by_common_factor(a, b)) return *quotient;
  return unevaluated();
}

SymExpr SymStore::floor_div_by_constant(SymExpr a, int64_t divisor) {
  SymExpr unevaluated_divisor = integer(divisor);
  auto unevaluated = [&] { return make(SymKind::kFloorDiv, std::vector{a, unevaluated_divisor}); };
  if (node(a).kind == SymKind::kInteger) {
    return integer(static_cast<int64_t>(floor_quotient(node(a).integer, divisor)));
  }
  if (divisor < 0) {
    if (divisor == INT64_MIN) return unevaluated();
    SymExpr negated = mul(integer(-1), a);
    if (node(negated).kind == SymKind::kCall) return unevaluated();
    return floor_div(negated, integer(-divisor));
  }

  LinearSum sum;
  sum.add(a, 1);
  work_ += sum.size();
  sum.finish();
  LinearSum quotient;
  LinearSum rest;
  Int128 common = divisor;
  auto gcd_with = [&](Int128 value) {
    common = std::gcd(static_cast<uint64_t>(common), static_cast<uint64_t>(absolute(value)));
  };
  for (const auto& term : sum.terms()) {
    gcd_with(term.coefficient);
    if (term.coefficient % divisor == 0) {
      quotient.add_term(term.monic, term.coefficient / divisor);
    } else {
      rest.add_term(term.monic, term.coefficient);
    }
  }
  gcd_with(sum.constant());
  bool takes_constant = sum.constant() != 0 && sum.constant() % divisor == 0;
  (takes_constant ? quotient : rest).add_constant(takes_constant ? sum.constant() / divisor : sum.constant());
  if (takes_constant || !quotient.terms().empty()) {
    // Both are parts of a canonical sum, so nothing overflows.
    SymExpr whole = *from_sum(quotient);
    return add(std::vector{whole, floor_div(*from_sum(rest), unevaluated_divisor)});
  }
  if (common > 1) {
    LinearSum reduced;
    reduced.add_constant(sum.constant() / common);
    for (const auto& term : sum.terms()) reduced.add_term(term.monic, term.coefficient / common);
    return floor_div(*from_sum(reduced), integer(static_cast<int64_t>(divisor / common)));
  }
  return unevaluated();
}

std::optional<SymExpr> SymStore::floor_div_by_common_factor(SymExpr a, SymExpr b) {
  auto [content_a, primitive_a] = primitive_part(a);
  auto [content_b, primitive_b] = primitive_part(b);
  if (primitive_a == primitive_b) return floor_div(integer(content_a), integer(content_b));

  LinearSum sum;
  sum.add(a, 1);
  work_ += sum.size();
  sum.finish();
  std::vector<Factor> common;
  collect_factors(handle(node(b).monic), common);
  auto content = static_cast<uint64_t>(absolute(sum.constant()));
  if (sum.constant() != 0) common.clear();
  std::vector<Factor> term_factors;
  for (const auto& term : sum.terms()) {
    content = std::gcd(content, static_cast<uint64_t>(absolute(term.coefficient)));
    term_factors.clear();
    collect_factors(term.monic, term_factors);
    for (Factor& factor : common) {
      factor.exponent = std::min(factor.exponent, exponent_of(factor.base, term_factors));
    }
    std::erase_if(common, [](const Factor& factor) { return factor.exponent <= 0; });
    work_ += term_factors.size() * (common.size() + 1);
  }
  content = std::gcd(content, static_cast<uint64_t>(absolute(node(b).coefficient)));
  if (content > static_cast<uint64_t>(INT64_MAX)) content = 1;
  if (common.empty() && content == 1) return std::nullopt;

  std::vector<SymExpr> divisor = {handle(node(b).monic)};
  std::vector<SymExpr> inverse;
  for (const Factor& factor : common) inverse.push_back(pow(factor.base, integer(-factor.exponent)));
  divisor.insert(divisor.end(), inverse.begin(), inverse.end());
  auto signed_content = static_cast<int64_t>(content);
  divisor.push_back(integer(node(b).coefficient / signed_content));
  LinearSum dividend;
  dividend.add_constant(sum.constant() / signed_content);
  for (const auto& term : sum.terms()) {
    std::vector<SymExpr> product = {term.monic};
    product.insert(product.end(), inverse.begin(), inverse.end());
    dividend.add(mul(product), static_cast<int64_t>(term.coefficient / signed_content));
  }
  auto numerator = from_sum(dividend);
  if (!numerator) return std::nullopt;
  return floor_div(*numerator, mul(divisor));
}

SymExpr SymStore::mod(SymExpr a, SymExpr b) {
  auto unevaluated = [&](SymExpr dividend) { return make(SymKind::kMod, std::vector{dividend, b}); };
  if (!are_integers(a, b) || is_constant(b, 0)) return unevaluated(a);
  if (is_constant(a, 0)) return a;
  if (is_constant(b, 1) || is_constant(b, -1) || a == b) return integer(0);
  SymRange quotients = interval_floor_div(node(a).assumed, node(b).assumed);
  if (is_single(quotients)) {
    // The quotient is known, so the remainder is a - quotient*b, unless that overflows.
    if (quotients.min == 0) return a;
    SymExpr remainder = sub(a, mul(integer(quotients.min), b));
    if (node(remainder).kind != SymKind::kCall) return remainder;
    return unevaluated(a);
  }
  if (node(b).kind != SymKind::kInteger) {
    auto [content_a, primitive_a] = primitive_part(a);
    auto [content_b, primitive_b] = primitive_part(b);
    if (primitive_a == primitive_b) {
      // (m*p) % (n*p) is (m % n)*p.
      return mul(integer(static_cast<int64_t>(floor_remainder(content_a, content_b))), primitive_a);
    }
    auto quotient = floor_div_by_common_factor(a, b);
    if (quotient && mul(*quotient, b) == a) return integer(0);
    return unevaluated(a);
  }

  int64_t divisor = node(b).integer;
  if (node(a).kind == SymKind::kMod && node(node(a).operands[1]).kind == SymKind::kInteger && divisor > 0) {
    int64_t inner = node(node(a).operands[1]).integer;
    if (inner > 0 && inner % divisor == 0) return mod(node(a).operands[0], b);
  }
  LinearSum sum;
  sum.add(a, 1);
  work_ += sum.size();
  sum.finish();
  LinearSum rest;
  for (const auto& term : sum.terms()) {
    if (term.coefficient % divisor != 0) rest.add_term(term.monic, term.coefficient);
  }
  LinearSum rest_with_constant = rest;
  rest_with_constant.add_constant(sum.constant());
  rest.add_constant(sum.constant() % divisor);
  SymExpr reduced = *from_sum(rest);
  // A constant that keeps the dividend from being negative is worth keeping: torch's Mod wants that.
  if (node(a).assumed.min >= 0 && node(reduced).assumed.min < 0) reduced = *from_sum(rest_with_constant);
  return reduced == a ? unevaluated(a) : mod(reduced, b);
}

SymExpr SymStore::min_max(SymKind kind, std::span<const SymExpr> operands) {
  static constexpr size_t kMaxPairwise = 32;
  bool is_min = kind == SymKind::kMin;
  std::vector<SymExpr> kept;
  std::optional<int64_t> constant;
  auto collect = [&](SymExpr operand) {
    if (node(operand).kind != SymKind::kInteger) return kept.push_back(operand);
    int64_t value = node(operand).integer;
    if (!constant || (is_min ? value < *constant : value > *constant)) constant = value;
  };
  for (SymExpr operand : operands) {
    if (node(operand).kind != kind) {
      collect(operand);
    } else {
      for (SymExpr inner : node(operand).operands) collect(inner);
    }
  }
  work_ += kept.size();
  std::stable_sort(kept.begin(), kept.end(), is_before);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (constant) kept.push_back(integer(*constant));

  if (kept.size() > 1 && kept.size() <= kMaxPairwise) {
    for (size_t i = 0; i < kept.size();) {
      bool is_dominated = false;
      for (size_t j = 0; j < kept.size() && !is_dominated; ++j) {
        if (i == j || !are_integers(kept[i], kept[j])) continue;
        SymRange distance = is_min ? assumed_difference(kept[i], kept[j]) : assumed_difference(kept[j], kept[i]);
        is_dominated = distance.min >= 0;
      }
      if (is_dominated) {
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
  return kept.size() == 1 ? kept[0] : make(kind, kept);
}

}  // namespace argosy
