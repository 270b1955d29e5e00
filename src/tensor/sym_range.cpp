#include <algorithm>

#include "base/check.h"
#include "tensor/sym_node.h"

namespace argosy {
namespace {

SymRange negated(SymRange range) { return interval_mul(range, interval_of(-1)); }

SymRange assumption_range(const SymAssumptions& assumptions) {
  if (assumptions.is_positive) return {1, SymRange::kNoMax};
  if (assumptions.is_nonnegative) return {0, SymRange::kNoMax};
  return {};
}

/// A float quotient, rounded to an integer in whatever way: near the exact one as long as doubles are dense there.
SymRange rounded_quotient(SymRange a, SymRange b) {
  for (int64_t end : {a.min, a.max, b.min, b.max}) {
    if (end < -kExactInDouble || end > kExactInDouble) return {};
  }
  SymRange quotient = interval_floor_div(a, b);
  return interval_add(quotient, {0, 1});
}

template <class RangeOf>
SymRange call_range(const SymNode& node, const RangeOf& range_of) {
  auto argument = [&](size_t i) { return range_of(SymStore::node(node.operands[i])); };
  size_t count = node.operands.size();
  if (count > 0 && (node.name == "Add" || node.name == "Mul")) {
    SymRange result = argument(0);
    for (size_t i = 1; i < count; ++i) {
      result = node.name == "Add" ? interval_add(result, argument(i)) : interval_mul(result, argument(i));
    }
    return result;
  }
  if (count == 2 && node.name == "CeilDiv") return negated(interval_floor_div(negated(argument(0)), argument(1)));
  if (count == 2 && node.name == "PowByNatural") {
    return interval_pow(argument(0), interval_max(argument(1), interval_of(0)));
  }
  if (count == 3 && node.name == "ModularIndexing" && argument(0).min >= 0 && argument(1).min >= 0) {
    return interval_mod(interval_floor_div(argument(0), argument(1)), argument(2));
  }
  if (int sign = big_integer_sign(node.name, node.operands); sign != 0) {
    return sign > 0 ? SymRange{INT64_MAX, SymRange::kNoMax} : SymRange{SymRange::kNoMin, INT64_MIN};
  }
  if (count == 1 && node.name == "Abs") return interval_max(argument(0), negated(argument(0)));
  if (count == 1 && node.name == "sign") return {-1, 1};
  bool rounds =
      node.name == "FloorToInt" || node.name == "CeilToInt" || node.name == "TruncToInt" || node.name == "RoundToInt";
  if (count == 1 && rounds && SymStore::node(node.operands[0]).kind == SymKind::kTrueDiv) {
    auto quotient = SymStore::node(node.operands[0]).operands;
    return rounded_quotient(range_of(SymStore::node(quotient[0])), range_of(SymStore::node(quotient[1])));
  }
  return {};
}

/// The range of an integer expression from those of its parts (see visit_bottom_up).
template <class RangeOf>
SymRange combine(const SymNode& node, const RangeOf& range_of) {
  auto operand = [&](size_t i) { return range_of(SymStore::node(node.operands[i])); };
  if (is_scaled(node)) return interval_mul(interval_of(node.coefficient), range_of(*node.monic));
  switch (node.kind) {
    case SymKind::kInteger: return interval_of(node.integer);
    case SymKind::kSymbol: return assumption_range(node.assumptions);
    case SymKind::kAdd:
    case SymKind::kMul:
    case SymKind::kMin:
    case SymKind::kMax: {
      auto combine_two = node.kind == SymKind::kAdd   ? interval_add
                         : node.kind == SymKind::kMul ? interval_mul
                         : node.kind == SymKind::kMin ? interval_min
                                                      : interval_max;
      SymRange result = operand(0);
      for (size_t i = 1; i < node.operands.size(); ++i) result = combine_two(result, operand(i));
      return result;
    }
    case SymKind::kPow: return interval_pow(operand(0), operand(1));
    case SymKind::kFloorDiv: return interval_floor_div(operand(0), operand(1));
    case SymKind::kMod: return interval_mod(operand(0), operand(1));
    case SymKind::kIte: return interval_hull(operand(1), operand(2));
    case SymKind::kCall: return call_range(node, range_of);
    default: return {};
  }
}

template <class RangeOf>
SymRange range_of_sum(const LinearSum& sum, const RangeOf& range_of) {
  if (!fits_int64(sum.constant())) return {};
  SymRange result = interval_of(static_cast<int64_t>(sum.constant()));
  for (const auto& term : sum.terms()) {
    if (!fits_int64(term.coefficient)) return {};
    SymRange coefficient = interval_of(static_cast<int64_t>(term.coefficient));
    result = interval_add(result, interval_mul(coefficient, range_of(term.monic)));
  }
  return result;
}

}  // namespace

SymRange SymStore::assumed_range_of(const SymNode& node) const {
  return combine(node, [](const SymNode& part) { return part.assumed; });
}

SymRange SymStore::assumed_difference(SymExpr a, SymExpr b) {
  LinearSum sum;
  sum.add(a, 1);
  sum.add(b, -1);
  work_ += sum.size();
  if (!sum.finish()) return {};
  return range_of_sum(sum, [](SymExpr monic) { return node(monic).assumed; });
}

SymRange SymStore::difference(SymExpr a, SymExpr b) {
  LinearSum sum;
  sum.add(a, 1);
  sum.add(b, -1);
  if (!sum.finish()) return {};
  return range_of_sum(sum,
                      [this](SymExpr monic) { return node(monic).type == SymType::kInt ? range(monic) : SymRange{}; });
}

bool SymStore::set_range(SymExpr symbol, SymRange range) {
  const SymNode& symbol_node = node(symbol);
  ARGOSY_CHECK(symbol_node.kind == SymKind::kSymbol, "only symbols have ranges of their own");
  SymRange narrowed = interval_intersect(range, symbol_node.assumed);
  if (is_empty(narrowed)) return false;
  symbol_ranges_[&symbol_node] = narrowed;
  current_ranges_.clear();
  return true;
}

SymRange SymStore::range(SymExpr expression) {
  const SymNode& root = node(expression);
  if (root.type == SymType::kBool) {
    return root.kind == SymKind::kBoolean ? interval_of(root.integer) : SymRange{0, 1};
  }
  if (root.type != SymType::kInt) return {};
  if (symbol_ranges_.empty() || root.kind == SymKind::kInteger) return root.assumed;
  auto range_of = [&](const SymNode& part) {
    // Parts that are not integers (conditions, floats) are bounded by nothing.
    return part.type == SymType::kInt ? current_ranges_.at(&part) : SymRange{};
  };
  visit_bottom_up(
      &root, [&](const SymNode* part) { return current_ranges_.contains(part); },
      [&](const SymNode& part, std::span<const SymExpr>) {
        SymRange result;
        if (part.type == SymType::kInt) {
          auto given = part.kind == SymKind::kSymbol ? symbol_ranges_.find(&part) : symbol_ranges_.end();
          result = given != symbol_ranges_.end() ? given->second : combine(part, range_of);
          result = interval_intersect(result, part.assumed);
        }
        current_ranges_.emplace(&part, result);
      });
  return current_ranges_.at(&root);
}

}  // namespace argosy
