#include <algorithm>
#include <numeric>

#include "tensor/sym_node.h"

namespace argosy {
namespace {

// Normal forms are for the sizes of real models; what is larger or deeper is compared as it is.
constexpr size_t kMaxExpandedTerms = 128;
constexpr uint32_t kMaxNormalizedDepth = 500;
constexpr int64_t kMaxExpandedPower = 8;
/// Equalities that rewrite; more than any trace has.
constexpr size_t kMaxRules = 2048;

size_t term_count(SymExpr expression) {
  const SymNode& node = SymStore::node(expression);
  return node.kind == SymKind::kAdd ? node.operands.size() : 1;
}

bool occurs(const SymNode* wanted, SymExpr expression) {
  std::unordered_set<const SymNode*> seen;
  visit_bottom_up(
      &SymStore::node(expression), [&](const SymNode* node) { return node->id < wanted->id || seen.contains(node); },
      [&](const SymNode& node, std::span<const SymExpr>) { seen.insert(&node); });
  return seen.contains(wanted);
}

std::optional<bool> negation(std::optional<bool> value) { return value ? std::optional(!*value) : std::nullopt; }

}  // namespace

std::optional<SymExpr> SymStore::expand_product(std::span<const SymExpr> factors) {
  SymExpr product = integer(1);
  for (SymExpr factor : factors) {
    if (term_count(product) * term_count(factor) > kMaxExpandedTerms) return std::nullopt;
    LinearSum sum;
    auto terms_of = [](const SymExpr& expression) {
      const SymNode& sum_node = node(expression);
      return sum_node.kind == SymKind::kAdd ? sum_node.operands : std::span<const SymExpr>(&expression, 1);
    };
    for (SymExpr left : terms_of(product)) {
      for (SymExpr right : terms_of(factor)) sum.add(mul(left, right), 1);
    }
    auto next = from_sum(sum);
    if (!next) return std::nullopt;
    product = *next;
  }
  return product;
}

SymExpr SymStore::reduced_floor_div(SymExpr a, SymExpr b) {
  SymExpr plain = floor_div(a, b);
  if (node(plain).kind == SymKind::kInteger || node(b).kind != SymKind::kInteger || node(b).integer <= 1) return plain;
  if (node(a).type != SymType::kInt) return plain;
  int64_t divisor = node(b).integer;
  LinearSum sum;
  sum.add(a, 1);
  if (!sum.finish()) return plain;
  LinearSum whole;
  LinearSum rest;
  Int128 common = divisor;
  for (const auto& term : sum.terms()) {
    Int128 remainder = floor_remainder(term.coefficient, divisor);
    whole.add_term(term.monic, (term.coefficient - remainder) / divisor);
    rest.add_term(term.monic, remainder);
    common = std::gcd(static_cast<uint64_t>(common), static_cast<uint64_t>(remainder));
  }
  // The rest of the dividend is a multiple of `common`, so the constant's residue below that never matters.
  Int128 constant = floor_remainder(sum.constant(), divisor);
  whole.add_constant((sum.constant() - constant) / divisor);
  rest.add_constant(constant - constant % common);
  auto quotient = from_sum(whole);
  auto dividend = from_sum(rest);
  if (!quotient || !dividend) return plain;
  return add(std::vector{*quotient, floor_div(*dividend, b)});
}

SymExpr SymStore::expand(const SymNode& like, std::span<const SymExpr> children) {
  SymExpr result = rebuild(like, children);
  const SymNode& built = node(result);
  if (term_count(result) > std::max(kMaxExpandedTerms, like.operands.size())) return handle(&like);
  switch (built.kind) {
    case SymKind::kMul:
      if (is_scaled(built)) {
        std::vector<SymExpr> factors = {integer(built.coefficient)};
        if (built.monic->kind != SymKind::kMul) return result;
        factors.insert(factors.end(), built.monic->operands.begin(), built.monic->operands.end());
        return expand_product(factors).value_or(result);
      }
      return expand_product(built.operands).value_or(result);
    case SymKind::kPow: {
      const SymNode& exponent = node(built.operands[1]);
      if (node(built.operands[0]).kind != SymKind::kAdd || exponent.kind != SymKind::kInteger) return result;
      if (exponent.integer < 2 || exponent.integer > kMaxExpandedPower) return result;
      std::vector<SymExpr> factors(static_cast<size_t>(exponent.integer), built.operands[0]);
      return expand_product(factors).value_or(result);
    }
    case SymKind::kFloorDiv: return reduced_floor_div(built.operands[0], built.operands[1]);
    case SymKind::kMod: {
      if (built.type != SymType::kInt || term_count(built.operands[0]) > kMaxExpandedTerms) return result;
      SymExpr quotient = reduced_floor_div(built.operands[0], built.operands[1]);
      auto product = expand_product(std::vector{quotient, built.operands[1]});
      return product ? sub(built.operands[0], *product) : result;
    }
    default: return result;
  }
}

SymExpr SymStore::normal_form(SymExpr expression) {
  if (node(expression).depth > kMaxNormalizedDepth) return expression;
  return transform(expression, normal_forms_,
                   [this](const SymNode& like, std::span<const SymExpr> children) { return expand(like, children); });
}

SymExpr SymStore::rewrite(SymExpr expression) {
  if (rules_.empty()) return expression;
  return transform(expression, rewritten_, [this](const SymNode& like, std::span<const SymExpr> children) {
    SymExpr rebuilt = like.operands.empty() ? handle(&like) : rebuild(like, children);
    auto rule = rules_.find(&node(rebuilt));
    return rule == rules_.end() ? rebuilt : rule->second;
  });
}

void SymStore::add_rule(SymExpr term, SymExpr value) {
  if (rule_order_.size() >= kMaxRules || !rules_.emplace(&node(term), value).second) return;
  // Values stay free of the terms of rules, so that one pass rewrites.
  Memo memo;
  for (const SymNode* key : rule_order_) {
    SymExpr& old_value = rules_.at(key);
    old_value = transform(old_value, memo, [&](const SymNode& like, std::span<const SymExpr> children) {
      SymExpr rebuilt = like.operands.empty() ? handle(&like) : rebuild(like, children);
      return rebuilt == term ? value : rebuilt;
    });
  }
  rule_order_.push_back(&node(term));
  rewritten_.clear();
}

std::optional<bool> SymStore::prove_equal(SymExpr a, SymExpr b) {
  if (a == b) return true;
  if (node(a).type == SymType::kBool || node(b).type == SymType::kBool) {
    SymExpr left = rewrite(a);
    SymExpr right = rewrite(b);
    if (left == right) return true;
    auto left_value = prove(left);
    auto right_value = prove(right);
    if (left_value && right_value) return *left_value == *right_value;
    return std::nullopt;
  }
  return prove_relation(SymKind::kEq, a, b);
}

std::optional<bool> SymStore::prove_relation(SymKind relation, SymExpr a, SymExpr b) {
  SymExpr decided = compare(relation, a, b);
  if (node(decided).kind == SymKind::kBoolean) return node(decided).integer != 0;
  SymExpr left = rewrite(a);
  SymExpr right = rewrite(b);
  decided = compare(relation, left, right);
  if (node(decided).kind == SymKind::kBoolean) return node(decided).integer != 0;
  // Of rounded numbers nothing more is known than that equal expressions are equal.
  if (node(left).type != SymType::kInt || node(right).type != SymType::kInt) return std::nullopt;
  if (auto known = decide_relation(relation, difference(a, b))) return known;
  if (left != a || right != b) {
    if (auto known = decide_relation(relation, difference(left, right))) return known;
  }
  SymExpr distance = normal_form(sub(normal_form(left), normal_form(right)));
  if (auto known = decide_relation(relation, difference(distance, integer(0)))) return known;

  SymExpr primitive = primitive_part(distance).second;
  if (zeros_.contains(&node(primitive))) return decide_relation(relation, interval_of(0));
  bool is_equality = relation == SymKind::kEq || relation == SymKind::kNe;
  if (is_equality && node(primitive).type == SymType::kInt && node(primitive).kind == SymKind::kAdd) {
    // 2*x + 4*y is never odd.
    uint64_t common = 0;
    for (SymExpr term : node(primitive).operands) {
      if (node(term).kind == SymKind::kInteger) continue;
      int64_t coefficient = node(term).coefficient;
      common = std::gcd(common,
                        coefficient < 0 ? ~static_cast<uint64_t>(coefficient) + 1 : static_cast<uint64_t>(coefficient));
    }
    const SymNode& last = node(node(primitive).operands.back());
    if (common > 1 && last.kind == SymKind::kInteger) return relation == SymKind::kNe;
  }
  return std::nullopt;
}

std::optional<bool> SymStore::prove(SymExpr condition) {
  std::unordered_map<const SymNode*, std::optional<bool>> known;
  auto decide = [&](const SymNode& test) -> std::optional<bool> {
    auto operand = [&](size_t i) -> std::optional<bool> {
      auto found = known.find(&node(test.operands[i]));
      return found == known.end() ? std::nullopt : found->second;
    };
    switch (test.kind) {
      case SymKind::kBoolean: return test.integer != 0;
      case SymKind::kNot: return negation(operand(0));
      case SymKind::kAnd:
      case SymKind::kOr: {
        bool is_and = test.kind == SymKind::kAnd;
        std::optional<bool> result = is_and;
        for (size_t i = 0; i < test.operands.size(); ++i) {
          if (operand(i) == std::optional(!is_and)) return !is_and;
          if (!operand(i)) result = std::nullopt;
        }
        return result;
      }
      case SymKind::kIte: {
        if (operand(0)) return *operand(0) ? operand(1) : operand(2);
        return operand(1) == operand(2) ? operand(1) : std::nullopt;
      }
      case SymKind::kEq:
      case SymKind::kNe: {
        auto equal = prove_equal(test.operands[0], test.operands[1]);
        return test.kind == SymKind::kEq ? equal : negation(equal);
      }
      case SymKind::kLt:
      case SymKind::kLe:
      case SymKind::kGt:
      case SymKind::kGe: return prove_relation(test.kind, test.operands[0], test.operands[1]);
      default: return std::nullopt;
    }
  };
  auto prove_tree = [&](SymExpr root) {
    visit_bottom_up(
        &node(root), [&](const SymNode* part) { return part->type != SymType::kBool || known.contains(part); },
        [&](const SymNode& part, std::span<const SymExpr>) { known.emplace(&part, decide(part)); });
    auto found = known.find(&node(root));
    return found == known.end() ? std::nullopt : found->second;
  };
  if (auto result = prove_tree(condition)) return result;
  SymExpr rewritten = rewrite(condition);
  return rewritten == condition ? std::nullopt : prove_tree(rewritten);
}

bool SymStore::unify_booleans(SymExpr a, SymExpr b) {
  auto known = prove_equal(a, b);
  if (known) return *known;
  if (node(a).kind == SymKind::kBoolean) std::swap(a, b);
  const SymNode& test = node(a);
  if (node(b).kind == SymKind::kBoolean) {
    bool holds = node(b).integer != 0;
    if (test.kind == SymKind::kNot) return unify(test.operands[0], boolean(!holds));
    if (test.kind == (holds ? SymKind::kEq : SymKind::kNe)) return unify(test.operands[0], test.operands[1]);
    SymExpr inverse = logical_not(a);
    add_rule(a, b);
    add_rule(inverse, boolean(!holds));
  } else if (!occurs(&test, b)) {
    add_rule(a, b);
  } else if (!occurs(&node(b), a)) {
    add_rule(b, a);
  }
  return true;
}

bool SymStore::unify(SymExpr a, SymExpr b) {
  SymExpr left = rewrite(a);
  SymExpr right = rewrite(b);
  if (node(left).type == SymType::kBool || node(right).type == SymType::kBool) return unify_booleans(left, right);
  if (auto known = prove_equal(left, right)) return *known;

  SymExpr distance = primitive_part(normal_form(sub(normal_form(left), normal_form(right)))).second;
  LinearSum sum;
  sum.add(distance, 1);
  if (!sum.finish()) return true;
  // Solve for a term that stands alone: preferably the newest symbol, else the last compound term.
  const LinearSum::Term* chosen = nullptr;
  auto is_better = [&](const LinearSum::Term& term) {
    if (chosen == nullptr) return true;
    bool is_symbol = node(term.monic).kind == SymKind::kSymbol;
    bool was_symbol = node(chosen->monic).kind == SymKind::kSymbol;
    if (is_symbol != was_symbol) return is_symbol;
    return !is_symbol || node(term.monic).id > node(chosen->monic).id;
  };
  for (const auto& term : sum.terms()) {
    bool is_unit = term.coefficient == 1 || term.coefficient == -1;
    if (!is_unit || node(term.monic).type != node(distance).type || !is_better(term)) continue;
    bool is_alone = std::none_of(sum.terms().begin(), sum.terms().end(), [&](const LinearSum::Term& other) {
      return other.monic != term.monic && occurs(&node(term.monic), other.monic);
    });
    if (is_alone) chosen = &term;
  }
  zeros_.insert(&node(distance));
  if (chosen == nullptr) return true;

  LinearSum rest;
  rest.add_constant(-sum.constant() * chosen->coefficient);
  for (const auto& term : sum.terms()) {
    if (&term != chosen) rest.add_term(term.monic, -term.coefficient * chosen->coefficient);
  }
  auto solution = from_sum(rest);
  if (!solution) return true;
  add_rule(chosen->monic, *solution);
  if (node(chosen->monic).kind == SymKind::kSymbol && node(*solution).type == SymType::kInt) {
    SymRange common = interval_intersect(range(chosen->monic), range(*solution));
    set_range(chosen->monic, common);
    if (node(*solution).kind == SymKind::kSymbol) set_range(*solution, common);
  }
  return true;
}

}  // namespace argosy
