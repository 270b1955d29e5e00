#pragma once

#include <cstdint>
#include <functional>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensor/sym.h"
#include "tensor/sym_interval.h"

namespace argosy {

/// Integers up to this are doubles without rounding.
inline constexpr int64_t kExactInDouble = int64_t{1} << 53;

/// What kind of value an expression has for sure.
enum class SymType : uint8_t { kInt, kReal, kBool, kUnknown };

/// An interned expression. Lives in its store's arena and never changes.
struct SymNode {
  SymKind kind = SymKind::kInteger;
  SymType type = SymType::kUnknown;
  SymAssumptions assumptions;         // of a kSymbol
  uint32_t id = 0;                    // by creation; operands have smaller ids
  uint32_t depth = 0;                 // 0 for leaves
  uint64_t hash = 0;                  // of all but id and assumptions
  int64_t integer = 0;                // of a kInteger or kBoolean
  double real = 0;                    // of a kFloat
  std::string_view name;              // of a kSymbol or kCall
  int64_t coefficient = 1;            // of a kMul: its leading constant; the node is coefficient * monic
  const SymNode* monic = nullptr;     // this node without its coefficient; itself if that is 1
  std::span<const SymExpr> operands;  // in the arena
  SymRange assumed;                   // what the symbols' assumptions alone imply; unbounded unless type is kInt
};

/// Whether the node is a product with a constant in front: coefficient * monic.
inline bool is_scaled(const SymNode& node) { return node.monic != &node; }

/// Integers beyond int64 (torch writes 4 * sys.maxsize as a bound) are the call BigInteger(limb, …): digits in base
/// 10^18, most significant first, each with the number's sign. Returns that sign, or 0 for anything else.
inline constexpr std::string_view kBigInteger = "BigInteger";
inline constexpr int64_t kBigIntegerBase = 1'000'000'000'000'000'000;
int big_integer_sign(std::string_view function, std::span<const SymExpr> arguments);

class LinearSum;

/// A number as an expression or its evaluation has it.
struct SymNumber {
  bool is_real = false;
  int64_t integer = 0;
  double real = 0;
  double as_double() const { return is_real ? real : static_cast<double>(integer); }
};

/// Exact three-way order; nullopt with a NaN.
std::optional<int> order_of(const SymNumber& a, const SymNumber& b);

/// What a relation of a to b is, given where a - b lies.
std::optional<bool> decide_relation(SymKind relation, SymRange difference);

/// All of SymContext's work. Split over several source files by theme; everything here is private to src/tensor/sym*.
class SymStore {
 public:
  SymStore();
  static const SymNode& node(SymExpr expression) { return *expression.node_; }
  static SymExpr handle(const SymNode* node) { return SymExpr(node); }

  // sym_store.cpp: leaves, interning, order.
  SymExpr integer(int64_t value);
  SymExpr real(double value);
  SymExpr boolean(bool value);
  SymExpr symbol(std::string_view name, SymAssumptions assumptions);
  /// Interns a node as it is; the operands are canonical already.
  SymExpr make(SymKind kind, std::span<const SymExpr> operands, std::string_view name = {});
  /// Structural order: by kind, then value or name, then number of operands, then operands. Zero only for equals.
  static int compare_order(SymExpr a, SymExpr b);
  static bool is_before(SymExpr a, SymExpr b) { return compare_order(a, b) < 0; }

  // sym_arithmetic.cpp
  SymExpr add(std::span<const SymExpr> operands);
  SymExpr sub(SymExpr a, SymExpr b);
  SymExpr mul(std::span<const SymExpr> operands);
  SymExpr mul(SymExpr a, SymExpr b);
  SymExpr pow(SymExpr base, SymExpr exponent);
  SymExpr scaled(SymExpr monic, int64_t coefficient);
  /// nullopt if a constant overflows.
  std::optional<SymExpr> from_sum(LinearSum& sum);
  /// expression = first * second, second without common integer factor and with a positive first coefficient.
  std::pair<int64_t, SymExpr> primitive_part(SymExpr expression);
  /// The factors of a product with integer exponents, without its coefficient.
  struct Factor {
    SymExpr base;
    int64_t exponent;
  };
  static void collect_factors(SymExpr monic, std::vector<Factor>& factors);

  // sym_division.cpp
  SymExpr floor_div(SymExpr a, SymExpr b);
  SymExpr mod(SymExpr a, SymExpr b);
  SymExpr true_div(SymExpr a, SymExpr b);
  SymExpr min_max(SymKind kind, std::span<const SymExpr> operands);

  // sym_logic.cpp
  SymExpr compare(SymKind relation, SymExpr a, SymExpr b);
  SymExpr and_or(SymKind kind, std::span<const SymExpr> operands);
  SymExpr logical_not(SymExpr a);
  SymExpr ite(SymExpr condition, SymExpr if_true, SymExpr if_false);
  SymExpr call(std::string_view function, std::span<const SymExpr> arguments);
  /// The canonical expression of that kind over other operands.
  SymExpr rebuild(const SymNode& like, std::span<const SymExpr> operands);
  /// Bottom-up over the distinct sub-expressions: `step` gets a node and the results of its children (see
  /// visit_bottom_up). Results are kept in `done`, which may be filled already.
  using Memo = std::unordered_map<const SymNode*, SymExpr>;
  static SymExpr transform(SymExpr root, Memo& done,
                           const std::function<SymExpr(const SymNode&, std::span<const SymExpr>)>& step);

  // sym_range.cpp
  bool set_range(SymExpr symbol, SymRange range);
  SymRange range(SymExpr expression);
  SymRange assumed_range_of(const SymNode& node) const;
  /// Range of a - b, in which common terms cancel.
  SymRange assumed_difference(SymExpr a, SymExpr b);
  SymRange difference(SymExpr a, SymExpr b);

  // sym_prove.cpp
  std::optional<bool> prove_equal(SymExpr a, SymExpr b);
  std::optional<bool> prove(SymExpr condition);
  bool unify(SymExpr a, SymExpr b);
  /// A form in which more equal expressions are identical: products of sums expanded, x % k written with x // k,
  /// coefficients under // k reduced to 0 … k - 1.
  SymExpr normal_form(SymExpr expression);
  /// The expression with what unify() recorded applied.
  SymExpr rewrite(SymExpr expression);

  // sym_evaluate.cpp
  static std::optional<int64_t> evaluate(SymExpr expression,
                                         const std::function<std::optional<int64_t>(SymExpr)>& value);
  SymExpr substitute(SymExpr expression, const std::function<std::optional<SymExpr>(SymExpr)>& replacement);

  const std::vector<SymExpr>& symbols() const { return symbols_; }
  /// Operands looked at by all building so far; the readers stop when a text causes too much of it.
  uint64_t work() const { return work_; }
  void count_work(uint64_t operands) { work_ += operands; }

 private:
  struct HashNode {
    size_t operator()(const SymNode* node) const { return node->hash; }
  };
  struct SameNode {
    bool operator()(const SymNode* a, const SymNode* b) const;
  };

  SymExpr intern(SymNode& candidate);
  std::string_view keep(std::string_view text);
  SymExpr floor_div_by_constant(SymExpr a, int64_t divisor);
  std::optional<SymExpr> floor_div_by_common_factor(SymExpr a, SymExpr b);
  SymExpr expand(const SymNode& node, std::span<const SymExpr> children);
  std::optional<SymExpr> expand_product(std::span<const SymExpr> factors);
  SymExpr reduced_floor_div(SymExpr a, SymExpr b);
  std::optional<bool> prove_relation(SymKind relation, SymExpr a, SymExpr b);
  bool unify_booleans(SymExpr a, SymExpr b);
  void add_rule(SymExpr term, SymExpr value);

  std::pmr::monotonic_buffer_resource arena_;
  std::unordered_set<const SymNode*, HashNode, SameNode> table_;
  std::vector<SymExpr> symbols_;
  uint32_t next_id_ = 0;
  uint64_t work_ = 0;

  std::unordered_map<const SymNode*, SymRange> symbol_ranges_;   // only where narrower than assumed
  std::unordered_map<const SymNode*, SymRange> current_ranges_;  // cache; emptied by set_range
  Memo normal_forms_;                                            // cache, never stale
  Memo rules_;                                                   // term -> what it equals, without terms of rules
  std::vector<const SymNode*> rule_order_;                       // the keys of rules_ as they came
  Memo rewritten_;                                               // cache; emptied by unify
  std::unordered_set<const SymNode*> zeros_;                     // primitive normal forms known to be 0
};

/// Calls `step(node, children)` for every distinct sub-expression that is not done, operands first. An explicit stack,
/// as depth has no bound. The children of coefficient * monic are {monic}.
template <class IsDone, class Step>
void visit_bottom_up(const SymNode* root, const IsDone& is_done, const Step& step) {
  std::vector<const SymNode*> pending = {root};
  while (!pending.empty()) {
    const SymNode* current = pending.back();
    if (is_done(current)) {
      pending.pop_back();
      continue;
    }
    SymExpr monic = SymStore::handle(current->monic);
    std::span<const SymExpr> children = is_scaled(*current) ? std::span<const SymExpr>(&monic, 1) : current->operands;
    size_t known = pending.size();
    for (SymExpr child : children) {
      if (!is_done(&SymStore::node(child))) pending.push_back(&SymStore::node(child));
    }
    if (pending.size() > known) continue;
    pending.pop_back();
    step(*current, children);
  }
}

/// constant + sum of coefficient * monic term, exact in 128 bits while it is collected.
class LinearSum {
 public:
  struct Term {
    SymExpr monic;
    Int128 coefficient;
  };

  void add(SymExpr expression, int64_t scale);
  void add_constant(Int128 value);
  void add_term(SymExpr monic, Int128 coefficient);
  /// Sorts, collects like terms and drops those that vanish. False if 128 bits were not enough.
  bool finish();

  const std::vector<Term>& terms() const { return terms_; }
  Int128 constant() const { return constant_; }
  size_t size() const { return terms_.size() + 1; }

 private:
  std::vector<Term> terms_;
  Int128 constant_ = 0;
  bool overflows_ = false;
};

}  // namespace argosy
