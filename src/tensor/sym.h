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
class SymStore;

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
  kCall,  // any other function, by name: kept, printed and evaluated only if all it needs is known; never simplified.
          // A sum or product whose constants overflow int64 is the call "Add" or "Mul" of its operands, an integer
          // beyond int64 in srepr the call "BigInteger" of its digits in base 10^18
};

/// Handle to an interned, canonical, immutable expression of one SymContext. Pointer-sized; equality is identity, so
/// two handles of one context are equal exactly when their canonical forms are. Valid as long as its context.
class SymExpr {
 public:
  SymExpr() = default;
  bool is_valid() const { return node_ != nullptr; }
  SymKind kind() const;
  std::optional<int64_t> as_integer() const;  // of a kInteger
  std::optional<double> as_real() const;      // of a kFloat
  std::optional<bool> as_boolean() const;     // of a kBoolean
  std::string_view symbol_name() const;       // of a kSymbol, else ""
  std::string_view function_name() const;     // of a kCall, else ""
  /// A sum has its constant last, a product has it first; kIte has condition, value if true, value if false.
  std::span<const SymExpr> operands() const;
  /// What the value is for sure: a symbol without assumptions and an unknown function are neither.
  bool is_integer_valued() const;
  bool is_boolean_valued() const;
  friend bool operator==(SymExpr, SymExpr) = default;

 private:
  friend class SymStore;
  explicit SymExpr(const SymNode* node) : node_(node) {}
  const SymNode* node_ = nullptr;
};

/// A closed range of integers; the ends saturate: kNoMin and kNoMax stand for "no bound".
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
  bool is_real = false;  // said of a symbol that is not an integer (a float input)
  friend bool operator==(const SymAssumptions&, const SymAssumptions&) = default;
};

/// Interns expressions: append-only, deterministic (operand order is canonical and does not depend on addresses or on
/// the order of creation), arithmetic exact or refused: a constant that overflows int64 stays an unevaluated kCall.
///
/// Integers are the mathematical ones and `//`, `%` are Python's. A simplification is exact wherever the original is
/// defined (no division by zero): x // x is 1. Reals are kept as written: floats are never folded with each other.
/// What is simplified when an expression is built depends only on the symbols' assumptions, which never change; ranges
/// given later by set_range() and equalities given by unify() are used by range(), prove() and prove_equal() alone.
///
/// Cost: building is linear in the number of operands (times its logarithm); the others are linear in the number of
/// distinct sub-expressions. One thread at a time per context, also for const functions, which fill caches; handles
/// may be looked at (SymExpr's members) by all.
class SymContext {
 public:
  /// Longest text that is read or written. Longer output is cut and ends in "...", which no reader accepts.
  static constexpr size_t kMaxTextLength = size_t{4} << 20;
  /// Deepest expression that is read. Output is cut beyond 1000.
  static constexpr uint32_t kMaxDepth = 256;

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

  /// Sets what is known of a symbol, within its assumptions: a positive symbol starts at min 1, a non-negative one at 0
  /// and stays there. False, and nothing changes, if no value would be left.
  bool set_range(SymExpr symbol, SymRange range);
  /// Interval arithmetic over the symbols' ranges; sound, not always tight. [0, 1] for booleans, unbounded for reals.
  SymRange range(SymExpr expression) const;
  /// All symbols in order of creation.
  std::vector<SymExpr> symbols() const;

  // Canonical forms: sums and products flattened, constants folded, like terms collected (2*s0 + s0 -> 3*s0), products
  // of sums not expanded unless one factor is a constant; floor_div and mod by constants simplified where exact; min
  // and max flattened, without operands that another one dominates.
  SymExpr add(SymExpr a, SymExpr b);
  SymExpr sub(SymExpr a, SymExpr b);
  SymExpr mul(SymExpr a, SymExpr b);
  SymExpr pow(SymExpr base, SymExpr exponent);
  SymExpr min(SymExpr a, SymExpr b);
  SymExpr max(SymExpr a, SymExpr b);
  SymExpr floor_div(SymExpr a, SymExpr b);  // Python's //
  SymExpr mod(SymExpr a, SymExpr b);        // Python's %
  SymExpr true_div(SymExpr a, SymExpr b);
  // Of many operands in one step: linear, where a chain of the above is quadratic. At least one operand.
  SymExpr add(std::span<const SymExpr> operands);
  SymExpr mul(std::span<const SymExpr> operands);
  /// kEq … kGe; decided where the assumptions allow (prove() also uses ranges and equalities).
  SymExpr compare(SymKind relation, SymExpr a, SymExpr b);
  SymExpr logical_and(SymExpr a, SymExpr b);
  SymExpr logical_or(SymExpr a, SymExpr b);
  SymExpr logical_not(SymExpr a);
  SymExpr ite(SymExpr condition, SymExpr if_true, SymExpr if_false);
  /// `function` must be an identifier, and neither a word of to_text nor a head of srepr that has a kind of its own
  /// (is_function_name). "Add" and "Mul" are add() and mul().
  SymExpr call(std::string_view function, std::span<const SymExpr> arguments);
  static bool is_function_name(std::string_view name);

  /// Replaces symbols by expressions, everywhere at once.
  SymExpr substitute(SymExpr expression, const std::function<std::optional<SymExpr>(SymExpr symbol)>& replacement);
  /// The value at given symbols, booleans as 0 and 1; nullopt if a symbol is unknown, a division is by zero, int64
  /// overflows, or the value is not an integer. Only the branch that a kIte takes must have a value.
  std::optional<int64_t> evaluate(SymExpr expression,
                                  const std::function<std::optional<int64_t>(SymExpr symbol)>& value) const;
  /// True or false if that holds for all values in the ranges (and under the equalities given by unify()) for which
  /// both sides are defined; nullopt: can't tell.
  std::optional<bool> prove_equal(SymExpr a, SymExpr b) const;
  std::optional<bool> prove(SymExpr condition) const;
  /// Records that two expressions are always equal (a guard of the trace); prove_equal uses it, and ranges of symbols
  /// narrow accordingly. False, and nothing is recorded, if it contradicts what is known.
  bool unify(SymExpr a, SymExpr b);

  /// Reads torch's sympy `srepr` text. Nesting, length and work are bounded; an unknown head becomes a kCall. CleanDiv
  /// is read as FloorDiv, PythonMod as Mod, Where and ITE as kIte, Identity(x) as x, assumptions other than those of
  /// SymAssumptions are dropped.
  Result<SymExpr> parse_srepr(std::string_view text);
  /// The same text as sympy would print for the expression (operand order may differ).
  std::string to_srepr(SymExpr expression) const;
  /// Readable infix, e.g. "2*s0 + min(s1, 8)", "s0 // 2", "s0 == s1 and s2 < 3"; parse_text reads it back to the
  /// same handle. Symbols that are not identifiers or are words of this language stand in backquotes. Assumptions are
  /// not part of the text: parse_text uses the symbols that exist and creates others with default assumptions.
  std::string to_text(SymExpr expression) const;
  Result<SymExpr> parse_text(std::string_view text);

 private:
  std::unique_ptr<SymStore> store_;
};

}  // namespace argosy
