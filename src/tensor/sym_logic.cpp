#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/sym_node.h"

namespace argosy {
namespace {

bool is_number(const SymNode& node) { return node.kind == SymKind::kInteger || node.kind == SymKind::kFloat; }

/// Exact order of an int64 and a double that is not a NaN.
int order_of(int64_t integer, double real) {
  if (real >= 0x1p63) return -1;
  if (real < -0x1p63) return 1;
  double floor = std::floor(real);
  auto whole = static_cast<int64_t>(floor);
  if (integer != whole) return integer < whole ? -1 : 1;
  return real > floor ? -1 : 0;
}

SymNumber number_of(const SymNode& node) { return {node.kind == SymKind::kFloat, node.integer, node.real}; }

SymKind opposite(SymKind relation) {
  switch (relation) {
    case SymKind::kEq: return SymKind::kNe;
    case SymKind::kNe: return SymKind::kEq;
    case SymKind::kLt: return SymKind::kGe;
    case SymKind::kLe: return SymKind::kGt;
    case SymKind::kGt: return SymKind::kLe;
    default: return SymKind::kLt;
  }
}

bool is_relation(SymKind kind) { return kind >= SymKind::kEq && kind <= SymKind::kGe; }

}  // namespace

std::optional<int> order_of(const SymNumber& a, const SymNumber& b) {
  if ((a.is_real && std::isnan(a.real)) || (b.is_real && std::isnan(b.real))) return std::nullopt;
  if (a.is_real && b.is_real) return (a.real > b.real) - (a.real < b.real);
  if (a.is_real) return -order_of(b.integer, a.real);
  if (b.is_real) return order_of(a.integer, b.real);
  return (a.integer > b.integer) - (a.integer < b.integer);
}

std::optional<bool> decide_relation(SymKind relation, SymRange difference) {
  bool never_less = difference.min >= 0;
  bool never_greater = difference.max <= 0;
  bool is_less = difference.max < 0;
  bool is_greater = difference.min > 0;
  auto decide = [](bool yes, bool no) { return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt; };
  switch (relation) {
    case SymKind::kEq: return decide(never_less && never_greater, is_less || is_greater);
    case SymKind::kNe: return decide(is_less || is_greater, never_less && never_greater);
    case SymKind::kLt: return decide(is_less, never_less);
    case SymKind::kLe: return decide(never_greater, is_greater);
    case SymKind::kGt: return decide(is_greater, never_greater);
    case SymKind::kGe: return decide(never_less, is_less);
    default: return std::nullopt;
  }
}

SymExpr SymStore::compare(SymKind relation, SymExpr a, SymExpr b) {
  ARGOSY_CHECK(is_relation(relation), "compare needs a relation");
  bool is_symmetric = relation == SymKind::kEq || relation == SymKind::kNe;
  const SymNode& left = node(a);
  const SymNode& right = node(b);
  if (is_number(left) && is_number(right)) {
    auto order = order_of(number_of(left), number_of(right));
    if (!order) return boolean(relation == SymKind::kNe);
    return boolean(*decide_relation(relation, interval_of(*order)));
  }
  if (left.kind == SymKind::kBoolean && right.kind == SymKind::kBoolean) {
    return boolean(*decide_relation(relation, interval_of(left.integer - right.integer)));
  }
  if (a == b) return boolean(*decide_relation(relation, interval_of(0)));
  if (left.type == SymType::kInt && right.type == SymType::kInt) {
    if (auto known = decide_relation(relation, assumed_difference(a, b))) return boolean(*known);
  }
  if (!is_symmetric) return make(relation, std::vector{a, b});
  // x == true is x.
  for (auto [x, constant] : {std::pair(&left, &right), std::pair(&right, &left)}) {
    if (x->type != SymType::kBool || constant->kind != SymKind::kBoolean) continue;
    bool is_same = (constant->integer != 0) == (relation == SymKind::kEq);
    return is_same ? handle(x) : logical_not(handle(x));
  }
  auto is_constant = [](const SymNode& node) { return is_number(node) || node.kind == SymKind::kBoolean; };
  bool is_ordered = is_constant(left) == is_constant(right) ? is_before(a, b) : is_constant(right);
  return make(relation, is_ordered ? std::vector{a, b} : std::vector{b, a});
}

SymExpr SymStore::and_or(SymKind kind, std::span<const SymExpr> operands) {
  bool is_and = kind == SymKind::kAnd;
  std::vector<SymExpr> kept;
  bool is_decided = false;
  auto collect = [&](SymExpr operand) {
    if (node(operand).kind != SymKind::kBoolean) return kept.push_back(operand);
    if ((node(operand).integer != 0) != is_and) is_decided = true;
  };
  for (SymExpr operand : operands) {
    if (node(operand).kind != kind) {
      collect(operand);
    } else {
      for (SymExpr inner : node(operand).operands) collect(inner);
    }
  }
  work_ += kept.size();
  if (is_decided) return boolean(!is_and);
  std::stable_sort(kept.begin(), kept.end(), is_before);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  for (SymExpr operand : kept) {
    if (std::binary_search(kept.begin(), kept.end(), logical_not(operand), is_before)) return boolean(!is_and);
  }
  if (kept.empty()) return boolean(is_and);
  return kept.size() == 1 ? kept[0] : make(kind, kept);
}

SymExpr SymStore::logical_not(SymExpr a) {
  const SymNode& operand = node(a);
  if (operand.kind == SymKind::kBoolean) return boolean(operand.integer == 0);
  if (operand.kind == SymKind::kNot) return operand.operands[0];
  if (is_relation(operand.kind)) {
    // not (x < y) is x >= y only where neither can be a NaN.
    bool is_exact =
        operand.kind == SymKind::kEq || operand.kind == SymKind::kNe ||
        (node(operand.operands[0]).type == SymType::kInt && node(operand.operands[1]).type == SymType::kInt);
    if (is_exact) return compare(opposite(operand.kind), operand.operands[0], operand.operands[1]);
  }
  return make(SymKind::kNot, std::vector{a});
}

SymExpr SymStore::ite(SymExpr condition, SymExpr if_true, SymExpr if_false) {
  const SymNode& test = node(condition);
  if (test.kind == SymKind::kBoolean) return test.integer != 0 ? if_true : if_false;
  if (if_true == if_false) return if_true;
  if (test.kind == SymKind::kNot) return ite(test.operands[0], if_false, if_true);
  return make(SymKind::kIte, std::vector{condition, if_true, if_false});
}

SymExpr SymStore::call(std::string_view function, std::span<const SymExpr> arguments) {
  ARGOSY_CHECK(SymContext::is_function_name(function), "not a function name: " + std::string(function));
  if (function == "Add") return add(arguments);
  if (function == "Mul") return mul(arguments);
  return make(SymKind::kCall, arguments, function);
}

SymExpr SymStore::rebuild(const SymNode& like, std::span<const SymExpr> operands) {
  if (is_scaled(like)) return mul(integer(like.coefficient), operands[0]);
  if (std::equal(operands.begin(), operands.end(), like.operands.begin(), like.operands.end())) return handle(&like);
  switch (like.kind) {
    case SymKind::kAdd: return add(operands);
    case SymKind::kMul: return mul(operands);
    case SymKind::kPow: return pow(operands[0], operands[1]);
    case SymKind::kMin:
    case SymKind::kMax: return min_max(like.kind, operands);
    case SymKind::kFloorDiv: return floor_div(operands[0], operands[1]);
    case SymKind::kMod: return mod(operands[0], operands[1]);
    case SymKind::kTrueDiv: return true_div(operands[0], operands[1]);
    case SymKind::kAnd:
    case SymKind::kOr: return and_or(like.kind, operands);
    case SymKind::kNot: return logical_not(operands[0]);
    case SymKind::kIte: return ite(operands[0], operands[1], operands[2]);
    case SymKind::kCall: return call(like.name, operands);
    default:
      if (is_relation(like.kind)) return compare(like.kind, operands[0], operands[1]);
      return handle(&like);
  }
}

SymExpr SymStore::transform(SymExpr root, Memo& done,
                            const std::function<SymExpr(const SymNode&, std::span<const SymExpr>)>& step) {
  std::vector<SymExpr> results;
  visit_bottom_up(
      &node(root), [&](const SymNode* visited) { return done.contains(visited); },
      [&](const SymNode& current, std::span<const SymExpr> children) {
        results.clear();
        for (SymExpr child : children) results.push_back(done.at(&node(child)));
        done.emplace(&current, step(current, results));
      });
  return done.at(&node(root));
}

}  // namespace argosy
