#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace argosy {

struct SymNode;

/// What a symbolic expression is made of. The names are those of sympy and of torch.utils._sympy.functions.
enum class SymKind : uint8_t {
  kInteger,
  kFloat,
  kBoolean,
  kSymbol,
  kAdd,
  kMul,
  kPow,
  kMin,
  kMax,
  kFloorDiv,
  kMod,
  kTrueDiv,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kNot,
  kIte,   // if-then-else (sympy's Piecewise with two branches)
  kCall,  // any other function, by name: kept, printed and evaluated only if all it needs is known; never simplified
};

/// Handle to an interned, canonical, immutable expression of one SymContext. Pointer-sized; equality is identity, so
/// two handles of one context are equal exactly when their canonical forms are. Valid as long as its context.
class SymExpr {
 public:
  SymExpr() = default;
  bool is_valid() const { return node_ != nullptr; }
  SymKind kind() const;
  std::optional<int64_t> as_integer() const;  // of a kInteger
  std::optional<bool> as_boolean() const;     // of a kBoolean
  std::string_view symbol_name() const;       // of a kSymbol, else ""
  std::span<const SymExpr> operands() const;
  friend bool operator==(SymExpr, SymExpr) = default;

 private:
  friend class SymContext;
  explicit SymExpr(const SymNode* node) : node_(node) {}
  const SymNode* node_ = nullptr;
};

/// A closed range of integers; the ends saturate: kMin/kMax stand for "no bound".
struct SymRange {
  static constexpr int64_t kNoMin = INT64_MIN;
  static constexpr int64_t kNoMax = INT64_MAX;
  int64_t min = kNoMin;
  int64_t max = kNoMax;
  friend bool operator==(const SymRange&, const SymRange&) = default;
};

/// What sympy's Symbol carries besides its name; kept so that an expression is written back as it came.
struct SymAssumptions {
  bool is_integer = true;
  bool is_positive = false;
  bool is_nonnegative = false;
  friend bool operator==(const SymAssumptions&, const SymAssumptions&) = default;
};

/// Interns expressions: append-only, deterministic (operand order is canonical and does not depend on addresses or on
/// the order of creation), arithmetic exact or refused: a constant that overflows int64 stays an unevaluated kCall. Not
/// thread-safe for creation.
class SymContext {
 public:
  SymContext();
  ~SymContext();
  SymContext(const SymContext&) = delete;
  SymContext& operator=(const SymContext&) = delete;

  SymExpr integer(int64_t value);
  SymExpr real(double value);
  SymExpr boolean(bool value);
  /// The symbol of that name; the first call decides its assumptions, later calls return the same symbol.
  SymExpr symbol(std::string_view name, SymAssumptions assumptions = {});
  SymAssumptions assumptions(SymExpr symbol) const;

  /// Narrows or sets what is known of a symbol. A positive symbol starts at min 1, a non-negative one at 0.
  void set_range(SymExpr symbol, SymRange range);
  SymRange range(SymExpr expression) const;  // interval arithmetic over the symbols' ranges
  /// All symbols in order of creation.
  std::vector<SymExpr> symbols() const;

  // Canonical forms: sums and products flattened, constants folded, like terms collected (2*s0 + s0 -> 3*s0), products
  // of sums not expanded unless one factor is a constant; floor_div and mod by constants simplified where exact.
  SymExpr add(SymExpr a, SymExpr b);
  SymExpr sub(SymExpr a, SymExpr b);
  SymExpr mul(SymExpr a, SymExpr b);
  SymExpr pow(SymExpr base, SymExpr exponent);
  SymExpr min(SymExpr a, SymExpr b);
  SymExpr max(SymExpr a, SymExpr b);
  SymExpr floor_div(SymExpr a, SymExpr b);  // Python's //
  SymExpr mod(SymExpr a, SymExpr b);        // Python's %
  SymExpr true_div(SymExpr a, SymExpr b);
  SymExpr compare(SymKind relation, SymExpr a, SymExpr b);  // kEq … kGe; decided where the ranges allow
  SymExpr logical_and(SymExpr a, SymExpr b);
  SymExpr logical_or(SymExpr a, SymExpr b);
  SymExpr logical_not(SymExpr a);
  SymExpr ite(SymExpr condition, SymExpr if_true, SymExpr if_false);
  SymExpr call(std::string_view function, std::span<const SymExpr> arguments);

  /// Replaces symbols by expressions, everywhere at once.
  SymExpr substitute(SymExpr expression, const std::function<std::optional<SymExpr>(SymExpr symbol)>& replacement);
  /// The value at given symbols; nullopt if a symbol is unknown, a division is by zero, or int64 overflows.
  std::optional<int64_t> evaluate(SymExpr expression,
                                  const std::function<std::optional<int64_t>(SymExpr symbol)>& value) const;
  /// True or false if that holds for all values in the ranges (and under the equalities given by unify()); nullopt:
  /// can't tell.
  std::optional<bool> prove_equal(SymExpr a, SymExpr b) const;
  std::optional<bool> prove(SymExpr condition) const;
  /// Records that two expressions are always equal (a guard of the trace); prove_equal uses it. False if it contradicts
  /// what is known.
  bool unify(SymExpr a, SymExpr b);

  /// Reads torch's sympy `srepr` text. Nesting and length are bounded; an unknown head becomes a kCall.
  Result<SymExpr> parse_srepr(std::string_view text);
  /// The same text as sympy would print for the expression (operand order may differ).
  std::string to_srepr(SymExpr expression) const;
  /// Readable infix, e.g. "2*s0 + min(s1, 8)", "s0 // 2", "s0 == s1"; parse_text reads it back to the same handle,
  /// given the symbols exist or (create_symbols) are created with default assumptions.
  std::string to_text(SymExpr expression) const;
  Result<SymExpr> parse_text(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy
