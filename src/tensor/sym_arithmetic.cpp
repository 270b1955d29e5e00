#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "tensor/sym_node.h"

namespace argosy {
namespace {

/// base^exponent for exponent >= 0; nullopt on overflow.
std::optional<int64_t> checked_pow(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent & 1) {
      auto next = checked_mul(result, base);
      if (!next) return std::nullopt;
      result = *next;
    }
    exponent >>= 1;
    if (exponent == 0) break;
    auto square = checked_mul(base, base);
    if (!square) return std::nullopt;
    base = *square;
  }
  return result;
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

}  // namespace

void LinearSum::add_constant(Int128 value) { overflows_ |= __builtin_add_overflow(constant_, value, &constant_); }

void LinearSum::add_term(SymExpr monic, Int128 coefficient) { terms_.push_back({monic, coefficient}); }

void LinearSum::add(SymExpr expression, int64_t scale) {
  const SymNode& node = SymStore::node(expression);
  if (node.kind == SymKind::kInteger) return add_constant(Int128{node.integer} * scale);
  if (node.kind != SymKind::kAdd) {
    return add_term(SymStore::handle(node.monic), Int128{node.coefficient} * scale);
  }
  for (SymExpr operand : node.operands) {
    const SymNode& term = SymStore::node(operand);
    if (term.kind == SymKind::kInteger) {
      add_constant(Int128{term.integer} * scale);
    } else {
      add_term(SymStore::handle(term.monic), Int128{term.coefficient} * scale);
    }
  }
}

bool LinearSum::finish() {
  auto is_before = [](const Term& a, const Term& b) { return SymStore::is_before(a.monic, b.monic); };
  if (!std::is_sorted(terms_.begin(), terms_.end(), is_before)) {
    std::stable_sort(terms_.begin(), terms_.end(), is_before);
  }
  size_t kept = 0;
  for (size_t i = 0; i < terms_.size();) {
    Term sum = terms_[i];
    for (++i; i < terms_.size() && terms_[i].monic == sum.monic; ++i) {
      overflows_ |= __builtin_add_overflow(sum.coefficient, terms_[i].coefficient, &sum.coefficient);
    }
    if (sum.coefficient != 0) terms_[kept++] = sum;
  }
  terms_.resize(kept);
  return !overflows_;
}

SymExpr SymStore::scaled(SymExpr monic, int64_t coefficient) {
  if (coefficient == 1) return monic;
  std::vector<SymExpr> operands = {integer(coefficient)};
  if (node(monic).kind == SymKind::kMul) {
    operands.insert(operands.end(), node(monic).operands.begin(), node(monic).operands.end());
  } else {
    operands.push_back(monic);
  }
  return make(SymKind::kMul, operands);
}

std::optional<SymExpr> SymStore::from_sum(LinearSum& sum) {
  work_ += sum.size();
  if (!sum.finish() || !fits_int64(sum.constant())) return std::nullopt;
  for (const auto& term : sum.terms()) {
    if (!fits_int64(term.coefficient)) return std::nullopt;
  }
  auto constant = static_cast<int64_t>(sum.constant());
  if (sum.terms().empty()) return integer(constant);
  std::vector<SymExpr> operands;
  operands.reserve(sum.size());
  for (const auto& term : sum.terms()) operands.push_back(scaled(term.monic, static_cast<int64_t>(term.coefficient)));
  if (constant != 0) operands.push_back(integer(constant));
  if (operands.size() == 1) return operands[0];
  return make(SymKind::kAdd, operands);
}

SymExpr SymStore::add(std::span<const SymExpr> operands) {
  LinearSum sum;
  for (SymExpr operand : operands) sum.add(operand, 1);
  if (auto result = from_sum(sum)) return *result;
  std::vector<SymExpr> sorted(operands.begin(), operands.end());
  std::stable_sort(sorted.begin(), sorted.end(), is_before);
  return make(SymKind::kCall, sorted, "Add");
}

SymExpr SymStore::sub(SymExpr a, SymExpr b) {
  LinearSum sum;
  sum.add(a, 1);
  sum.add(b, -1);
  if (auto result = from_sum(sum)) return *result;
  return add(std::vector{a, mul(integer(-1), b)});
}

std::pair<int64_t, SymExpr> SymStore::primitive_part(SymExpr expression) {
  LinearSum sum;
  sum.add(expression, 1);
  work_ += sum.size();
  if (!sum.finish() || sum.terms().empty()) return {1, expression};
  auto divisor = magnitude(static_cast<int64_t>(sum.constant()));
  for (const auto& term : sum.terms()) divisor = std::gcd(divisor, magnitude(static_cast<int64_t>(term.coefficient)));
  // 2^63 as a common factor has no positive int64; such a sum stays as it is.
  if (divisor > static_cast<uint64_t>(INT64_MAX)) return {1, expression};
  auto content = static_cast<int64_t>(divisor);
  if (sum.terms()[0].coefficient < 0) content = -content;
  if (content == 1) return {1, expression};
  LinearSum reduced;
  reduced.add_constant(sum.constant() / content);
  for (const auto& term : sum.terms()) reduced.add_term(term.monic, term.coefficient / content);
  auto result = from_sum(reduced);
  return result ? std::pair{content, *result} : std::pair{int64_t{1}, expression};
}

void SymStore::collect_factors(SymExpr monic, std::vector<Factor>& factors) {
  auto collect_one = [&](SymExpr factor) {
    const SymNode& power = node(factor);
    if (power.kind == SymKind::kPow && node(power.operands[1]).kind == SymKind::kInteger) {
      factors.push_back({power.operands[0], node(power.operands[1]).integer});
    } else {
      factors.push_back({factor, 1});
    }
  };
  if (node(monic).kind != SymKind::kMul) return collect_one(monic);
  for (SymExpr factor : node(monic).operands) {
    if (node(factor).kind != SymKind::kInteger) collect_one(factor);
  }
}

SymExpr SymStore::mul(SymExpr a, SymExpr b) { return mul(std::vector{a, b}); }

SymExpr SymStore::mul(std::span<const SymExpr> operands) {
  auto unevaluated = [&] {
    std::vector<SymExpr> sorted(operands.begin(), operands.end());
    std::stable_sort(sorted.begin(), sorted.end(), is_before);
    return make(SymKind::kCall, sorted, "Mul");
  };
  Int128 coefficient = 1;
  bool overflows = false;
  auto multiply = [&](int64_t value) {
    if (value == 0) coefficient = 0;
    // 128 bits hold this product; beyond 64 bits it can only grow or become zero.
    if (coefficient != 0 && !overflows) {
      coefficient *= value;
      overflows = coefficient > Int128{INT64_MAX} + 1 || coefficient < Int128{INT64_MIN};
    }
  };

  std::vector<Factor> factors;
  for (SymExpr operand : operands) {
    const SymNode& factor = node(operand);
    work_ += 1 + factor.operands.size();
    if (factor.kind == SymKind::kInteger) {
      multiply(factor.integer);
      continue;
    }
    multiply(factor.coefficient);
    collect_factors(operand, factors);
  }
  if (coefficient == 0) return integer(0);
  if (overflows) return unevaluated();

  // (2*a + 2*b)*c is 2*(a + b)*c, so that both ways of building it meet.
  if (factors.size() > 1) {
    for (Factor& factor : factors) {
      if (factor.exponent != 1 || node(factor.base).kind != SymKind::kAdd) continue;
      auto [content, primitive] = primitive_part(factor.base);
      multiply(content);
      factor.base = primitive;
    }
  }
  std::stable_sort(factors.begin(), factors.end(),
                   [](const Factor& a, const Factor& b) { return is_before(a.base, b.base); });
  std::vector<SymExpr> product;
  bool must_repeat = false;
  for (size_t i = 0; i < factors.size();) {
    SymExpr base = factors[i].base;
    Int128 exponent = factors[i].exponent;
    size_t first = i;
    for (++i; i < factors.size() && factors[i].base == base; ++i) exponent += factors[i].exponent;
    if (exponent == 0) continue;
    if (!fits_int64(exponent)) return unevaluated();
    SymExpr power = pow(base, integer(static_cast<int64_t>(exponent)));
    SymKind kind = node(power).kind;
    bool is_merged = i - first > 1;
    must_repeat |= kind == SymKind::kMul || kind == SymKind::kInteger || (is_merged && kind == SymKind::kAdd);
    product.push_back(power);
  }
  if (overflows || !fits_int64(coefficient)) return unevaluated();
  auto constant = static_cast<int64_t>(coefficient);
  if (must_repeat) {
    // A power that merging made foldable: now finer than before, so this ends.
    product.push_back(integer(constant));
    return mul(product);
  }
  if (product.empty()) return integer(constant);
  if (product.size() > 1) {
    std::stable_sort(product.begin(), product.end(), is_before);
    return scaled(make(SymKind::kMul, product), constant);
  }
  if (node(product[0]).kind != SymKind::kAdd || constant == 1) return scaled(product[0], constant);
  LinearSum sum;
  sum.add(product[0], constant);
  if (auto result = from_sum(sum)) return *result;
  return unevaluated();
}

SymExpr SymStore::pow(SymExpr base, SymExpr exponent) {
  const SymNode& base_node = node(base);
  const SymNode& exponent_node = node(exponent);
  auto unevaluated = [&] { return make(SymKind::kPow, std::vector{base, exponent}); };
  if (base_node.kind == SymKind::kInteger && base_node.integer == 1) return base;
  if (exponent_node.kind != SymKind::kInteger) return unevaluated();
  int64_t n = exponent_node.integer;
  if (n == 0) return integer(1);
  if (n == 1) return base;
  if (base_node.kind == SymKind::kPow && node(base_node.operands[1]).kind == SymKind::kInteger) {
    auto total = checked_mul(node(base_node.operands[1]).integer, n);
    return total ? pow(base_node.operands[0], integer(*total)) : unevaluated();
  }
  if (base_node.kind == SymKind::kMul) {
    SymExpr constant = pow(integer(base_node.coefficient), exponent);
    if (n > 0 && node(constant).kind != SymKind::kInteger) return unevaluated();
    std::vector<SymExpr> powers = {constant};
    for (SymExpr factor : base_node.operands) {
      if (node(factor).kind != SymKind::kInteger) powers.push_back(pow(factor, exponent));
    }
    return mul(powers);
  }
  if (base_node.kind == SymKind::kInteger) {
    if (base_node.integer == -1) return integer(n % 2 == 0 ? 1 : -1);
    auto value = n > 0 ? checked_pow(base_node.integer, n) : std::nullopt;
    return value ? integer(*value) : unevaluated();
  }
  if (n < 0) return unevaluated();
  if (base_node.kind == SymKind::kAdd) {
    auto [content, primitive] = primitive_part(base);
    auto constant = checked_pow(content, n);
    if (content == 1 || !constant) return unevaluated();
    return scaled(make(SymKind::kPow, std::vector{primitive, exponent}), *constant);
  }
  return unevaluated();
}

}  // namespace argosy
