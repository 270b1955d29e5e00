#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "tensor/sym_node.h"

namespace argosy {
namespace {

using Value = std::optional<SymNumber>;
using Values = std::span<const Value>;

Value integer_value(std::optional<int64_t> value) {
  if (!value) return std::nullopt;
  return SymNumber{false, *value, 0};
}

Value integer_value(Int128 value) {
  if (!fits_int64(value)) return std::nullopt;
  return SymNumber{false, static_cast<int64_t>(value), 0};
}

Value real_value(double value) { return SymNumber{true, 0, value}; }

/// The integer that a double is; nullopt if it is none of int64.
Value whole_value(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63)) return std::nullopt;
  return SymNumber{false, static_cast<int64_t>(value), 0};
}

Value add_values(Values values) {
  Int128 sum = 0;
  double real_sum = 0;
  bool is_real = false;
  for (const Value& value : values) {
    if (!value) return std::nullopt;
    is_real |= value->is_real;
    real_sum += value->as_double();
    if (!value->is_real && __builtin_add_overflow(sum, Int128{value->integer}, &sum)) return std::nullopt;
  }
  return is_real ? real_value(real_sum) : integer_value(sum);
}

Value mul_values(Values values) {
  int64_t product = 1;
  double real_product = 1;
  bool is_real = false;
  bool overflows = false;
  bool is_zero = false;
  for (const Value& value : values) {
    if (!value) return std::nullopt;
    is_real |= value->is_real;
    real_product *= value->as_double();
    if (value->is_real) continue;
    is_zero |= value->integer == 0;
    overflows |= __builtin_mul_overflow(product, value->integer, &product);
  }
  if (is_real) return real_value(real_product);
  if (is_zero) return integer_value(std::optional<int64_t>(0));
  return overflows ? std::nullopt : integer_value(std::optional(product));
}

Value pow_value(const SymNumber& base, const SymNumber& exponent) {
  if (base.is_real || exponent.is_real || exponent.integer < 0) {
    return real_value(std::pow(base.as_double(), exponent.as_double()));
  }
  int64_t result = 1;
  int64_t square = base.integer;
  bool square_overflows = false;
  for (int64_t n = exponent.integer; n > 0; n >>= 1) {
    if (n & 1) {
      if (square_overflows || __builtin_mul_overflow(result, square, &result)) return std::nullopt;
    }
    square_overflows |= __builtin_mul_overflow(square, square, &square);
  }
  return integer_value(std::optional(result));
}

Value floor_div_value(const SymNumber& a, const SymNumber& b) {
  if (a.is_real || b.is_real) return real_value(std::floor(a.as_double() / b.as_double()));
  if (b.integer == 0) return std::nullopt;
  return integer_value(floor_quotient(a.integer, b.integer));
}

Value mod_value(const SymNumber& a, const SymNumber& b) {
  if (a.is_real || b.is_real) {
    double divisor = b.as_double();
    double remainder = std::fmod(a.as_double(), divisor);
    return real_value(remainder != 0 && (remainder < 0) != (divisor < 0) ? remainder + divisor : remainder);
  }
  if (b.integer == 0) return std::nullopt;
  return integer_value(floor_remainder(a.integer, b.integer));
}

Value true_div_value(const SymNumber& a, const SymNumber& b) {
  if (b.as_double() == 0) return std::nullopt;
  for (const SymNumber& operand : {a, b}) {
    // Beyond that a quotient of doubles is not the rounded quotient of the integers.
    if (!operand.is_real && (operand.integer > kExactInDouble || operand.integer < -kExactInDouble))
      return std::nullopt;
  }
  return real_value(a.as_double() / b.as_double());
}

Value unary_call(std::string_view name, const SymNumber& x) {
  if (name == "ToFloat") return real_value(x.as_double());
  if (name == "TruncToFloat") return real_value(std::trunc(x.as_double()));
  if (name == "Abs" && !x.is_real) return integer_value(x.integer < 0 ? -Int128{x.integer} : Int128{x.integer});
  if (name == "sign" && !x.is_real) return integer_value(Int128{(x.integer > 0) - (x.integer < 0)});
  if (name == "OpaqueUnaryFn_sqrt") return real_value(std::sqrt(x.as_double()));
  bool floors = name == "FloorToInt" || name == "floor";
  bool ceils = name == "CeilToInt" || name == "ceiling";
  bool truncates = name == "TruncToInt";
  bool rounds = name == "RoundToInt";
  if (!floors && !ceils && !truncates && !rounds) return std::nullopt;
  if (!x.is_real) return x;
  if (floors) return whole_value(std::floor(x.real));
  if (ceils) return whole_value(std::ceil(x.real));
  return whole_value(truncates ? std::trunc(x.real) : std::nearbyint(x.real));
}

Value binary_call(std::string_view name, const SymNumber& a, const SymNumber& b) {
  if (name == "IntTrueDiv" || name == "FloatTrueDiv" || name == "Rational") return true_div_value(a, b);
  if (name == "FloatPow") return real_value(std::pow(a.as_double(), b.as_double()));
  if (a.is_real || b.is_real) return std::nullopt;
  if (name == "PowByNatural") return b.integer < 0 ? std::nullopt : pow_value(a, b);
  if (name == "CeilDiv" && b.integer != 0) return integer_value(-floor_quotient(-Int128{a.integer}, b.integer));
  if (name == "BitwiseFn_bitwise_and") return integer_value(Int128{a.integer & b.integer});
  if (name == "BitwiseFn_bitwise_or") return integer_value(Int128{a.integer | b.integer});
  if (name == "BitwiseFn_bitwise_xor") return integer_value(Int128{a.integer ^ b.integer});
  if (b.integer < 0) return std::nullopt;
  int64_t shift = std::min<int64_t>(b.integer, 63);
  if (name == "LShift") {
    return a.integer != 0 && b.integer > 63 ? std::nullopt : integer_value(Int128{a.integer} * (Int128{1} << shift));
  }
  if (name == "RShift") return integer_value(Int128{a.integer >> shift});
  return std::nullopt;
}

Value call_value(std::string_view name, Values values) {
  if (name == "Add") return add_values(values);
  if (name == "Mul") return mul_values(values);
  for (const Value& value : values) {
    if (!value) return std::nullopt;
  }
  if (values.size() == 1) return unary_call(name, *values[0]);
  if (values.size() == 2) return binary_call(name, *values[0], *values[1]);
  if (values.size() == 3 && name == "ModularIndexing") {
    auto quotient = floor_div_value(*values[0], *values[1]);
    // C's remainder: the same as Python's where neither side is negative.
    if (!quotient || quotient->is_real || quotient->integer < 0) return std::nullopt;
    if (values[2]->is_real || values[2]->integer <= 0) return std::nullopt;
    return mod_value(*quotient, *values[2]);
  }
  return std::nullopt;
}

Value compare_values(SymKind relation, const SymNumber& a, const SymNumber& b) {
  auto order = order_of(a, b);
  bool holds = order ? *decide_relation(relation, interval_of(*order)) : relation == SymKind::kNe;
  return integer_value(std::optional<int64_t>(holds ? 1 : 0));
}

Value logical_value(bool is_and, Values values) {
  bool is_known = true;
  for (const Value& value : values) {
    if (value && (value->as_double() != 0) != is_and) return integer_value(std::optional<int64_t>(is_and ? 0 : 1));
    is_known &= value.has_value();
  }
  return is_known ? integer_value(std::optional<int64_t>(is_and ? 1 : 0)) : std::nullopt;
}

Value extreme_value(bool is_min, Values values) {
  for (const Value& value : values) {
    if (!value) return std::nullopt;
  }
  SymNumber best = *values[0];
  for (const Value& value : values.subspan(1)) {
    auto order = order_of(*value, best);
    if (!order) return std::nullopt;
    if (is_min ? *order < 0 : *order > 0) best = *value;
  }
  return best;
}

/// The value of an inner node from those of its operands.
Value combine(const SymNode& node, Values values) {
  switch (node.kind) {
    case SymKind::kInteger:
    case SymKind::kBoolean: return SymNumber{false, node.integer, 0};
    case SymKind::kFloat: return real_value(node.real);
    case SymKind::kAdd: return add_values(values);
    case SymKind::kMul: return mul_values(values);
    case SymKind::kMin: return extreme_value(true, values);
    case SymKind::kMax: return extreme_value(false, values);
    case SymKind::kAnd: return logical_value(true, values);
    case SymKind::kOr: return logical_value(false, values);
    case SymKind::kCall: return call_value(node.name, values);
    case SymKind::kIte:
      if (!values[0]) return std::nullopt;
      return values[0]->as_double() != 0 ? values[1] : values[2];
    default: break;
  }
  for (const Value& value : values) {
    if (!value) return std::nullopt;
  }
  switch (node.kind) {
    case SymKind::kPow: return pow_value(*values[0], *values[1]);
    case SymKind::kFloorDiv: return floor_div_value(*values[0], *values[1]);
    case SymKind::kMod: return mod_value(*values[0], *values[1]);
    case SymKind::kTrueDiv: return true_div_value(*values[0], *values[1]);
    case SymKind::kNot: return integer_value(std::optional<int64_t>(values[0]->as_double() == 0 ? 1 : 0));
    default: return compare_values(node.kind, *values[0], *values[1]);
  }
}

}  // namespace

std::optional<int64_t> SymStore::evaluate(SymExpr expression,
                                          const std::function<std::optional<int64_t>(SymExpr)>& value) {
  std::unordered_map<const SymNode*, Value> done;
  std::vector<Value> operands;
  visit_bottom_up(
      &node(expression), [&](const SymNode* part) { return done.contains(part); },
      [&](const SymNode& part, std::span<const SymExpr> children) {
        if (part.kind == SymKind::kSymbol) {
          done.emplace(&part, integer_value(value(handle(&part))));
          return;
        }
        operands.clear();
        if (is_scaled(part)) operands.push_back(SymNumber{false, part.coefficient, 0});
        for (SymExpr child : children) operands.push_back(done.at(&node(child)));
        done.emplace(&part, combine(part, operands));
      });
  const Value& result = done.at(&node(expression));
  if (!result || result->is_real) return std::nullopt;
  return result->integer;
}

SymExpr SymStore::substitute(SymExpr expression, const std::function<std::optional<SymExpr>(SymExpr)>& replacement) {
  Memo done;
  return transform(expression, done, [&](const SymNode& like, std::span<const SymExpr> children) {
    if (like.kind == SymKind::kSymbol) return replacement(handle(&like)).value_or(handle(&like));
    return like.operands.empty() ? handle(&like) : rebuild(like, children);
  });
}

}  // namespace argosy
