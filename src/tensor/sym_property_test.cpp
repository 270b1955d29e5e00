// Random expressions, against direct evaluation of the same tree in 128 bits.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "tensor/sym.h"
#include "tensor/sym_interval.h"

namespace argosy {
namespace {

constexpr size_t kSymbolCount = 4;
/// Values of s (positive), n (not negative), x and y.
using Point = std::array<int64_t, kSymbolCount>;

/// A tree as it was built, before anything simplified it.
struct Tree {
  SymKind kind = SymKind::kInteger;
  int64_t value = 0;  // of a kInteger; number of a kSymbol
  std::vector<Tree> operands;
};

/// Numbers of this size never overflow 128 bits in one step; beyond it a sample is not compared.
constexpr Int128 kLimit = Int128{1} << 62;

std::optional<Int128> direct_value(const Tree& tree, const Point& point) {
  if (tree.kind == SymKind::kInteger) return tree.value;
  if (tree.kind == SymKind::kSymbol) return point[static_cast<size_t>(tree.value)];
  if (tree.kind == SymKind::kIte) {
    auto condition = direct_value(tree.operands[0], point);
    if (!condition) return std::nullopt;
    return direct_value(tree.operands[*condition != 0 ? 1 : 2], point);
  }
  std::vector<Int128> values;
  for (const Tree& operand : tree.operands) {
    auto value = direct_value(operand, point);
    if (!value || *value > kLimit || *value < -kLimit) return std::nullopt;
    values.push_back(*value);
  }
  switch (tree.kind) {
    case SymKind::kAdd: return values[0] + values[1];
    case SymKind::kMul: return values[0] * values[1];
    case SymKind::kPow: return values[1] == 2 ? values[0] * values[0] : values[0];
    case SymKind::kMin: return std::min(values[0], values[1]);
    case SymKind::kMax: return std::max(values[0], values[1]);
    case SymKind::kFloorDiv:
      if (values[1] == 0) return std::nullopt;
      return floor_quotient(values[0], values[1]);
    case SymKind::kMod:
      if (values[1] == 0) return std::nullopt;
      return floor_remainder(values[0], values[1]);
    case SymKind::kEq: return values[0] == values[1];
    case SymKind::kNe: return values[0] != values[1];
    case SymKind::kLt: return values[0] < values[1];
    case SymKind::kLe: return values[0] <= values[1];
    case SymKind::kGt: return values[0] > values[1];
    case SymKind::kGe: return values[0] >= values[1];
    case SymKind::kAnd: return values[0] != 0 && values[1] != 0;
    case SymKind::kOr: return values[0] != 0 || values[1] != 0;
    case SymKind::kNot: return values[0] == 0;
    default: return std::nullopt;
  }
}

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

  Tree number(int depth) {
    int64_t choice = depth == 0 ? pick(0, 3) : pick(0, 15);
    if (choice < 2) return {SymKind::kSymbol, pick(0, kSymbolCount - 1), {}};
    if (choice == 2) return {SymKind::kInteger, pick(-6, 12), {}};
    if (choice == 3) {
      static constexpr int64_t kEdges[] = {0, 1, -1, 2, 1000003, INT64_MAX, INT64_MIN, int64_t{1} << 40};
      return {SymKind::kInteger, kEdges[pick(0, depth == 0 ? 4 : 7)], {}};
    }
    if (choice == 4) return {SymKind::kIte, 0, {condition(depth - 1), number(depth - 1), number(depth - 1)}};
    if (choice == 5) return {SymKind::kPow, 0, {number(depth - 1), {SymKind::kInteger, pick(1, 2), {}}}};
    // Constants as divisors are the usual case.
    if (choice <= 8) {
      SymKind kind = choice == 8 ? SymKind::kMod : SymKind::kFloorDiv;
      return {kind, 0, {number(depth - 1), {SymKind::kInteger, pick(-4, 12), {}}}};
    }
    static constexpr SymKind kKinds[] = {SymKind::kAdd, SymKind::kAdd, SymKind::kMul,      SymKind::kMul,
                                         SymKind::kMin, SymKind::kMax, SymKind::kFloorDiv, SymKind::kMod};
    return {kKinds[pick(0, 7)], 0, {number(depth - 1), number(depth - 1)}};
  }

  Tree condition(int depth) {
    int64_t choice = depth <= 0 ? 0 : pick(0, 5);
    if (choice == 4) {
      return {pick(0, 1) != 0 ? SymKind::kAnd : SymKind::kOr, 0, {condition(depth - 1), condition(depth - 1)}};
    }
    if (choice == 5) return {SymKind::kNot, 0, {condition(depth - 1)}};
    static constexpr SymKind kKinds[] = {SymKind::kEq, SymKind::kNe, SymKind::kLt,
                                         SymKind::kLe, SymKind::kGt, SymKind::kGe};
    int below = std::max(depth - 1, 0);
    return {kKinds[pick(0, 5)], 0, {number(below), number(below)}};
  }

  Point point() { return {pick(1, 9), pick(0, 9), pick(-9, 9), pick(-9, 9)}; }

 private:
  std::mt19937 random_;
};

class SymPropertyTest : public ::testing::Test {
 protected:
  SymPropertyTest() {
    symbols = {context.symbol("s", {.is_positive = true}), context.symbol("n", {.is_nonnegative = true}),
               context.symbol("x"), context.symbol("y")};
  }

  SymExpr build(const Tree& tree) {
    if (tree.kind == SymKind::kInteger) return context.integer(tree.value);
    if (tree.kind == SymKind::kSymbol) return symbols[static_cast<size_t>(tree.value)];
    SymExpr a = build(tree.operands[0]);
    if (tree.kind == SymKind::kNot) return context.logical_not(a);
    SymExpr b = build(tree.operands[1]);
    switch (tree.kind) {
      case SymKind::kAdd: return context.add(a, b);
      case SymKind::kMul: return context.mul(a, b);
      case SymKind::kPow: return context.pow(a, b);
      case SymKind::kMin: return context.min(a, b);
      case SymKind::kMax: return context.max(a, b);
      case SymKind::kFloorDiv: return context.floor_div(a, b);
      case SymKind::kMod: return context.mod(a, b);
      case SymKind::kAnd: return context.logical_and(a, b);
      case SymKind::kOr: return context.logical_or(a, b);
      case SymKind::kIte: return context.ite(a, b, build(tree.operands[2]));
      default: return context.compare(tree.kind, a, b);
    }
  }

  std::optional<int64_t> evaluate(SymExpr expression, const Point& point) {
    return context.evaluate(expression, [&](SymExpr symbol) -> std::optional<int64_t> {
      for (size_t i = 0; i < kSymbolCount; ++i) {
        if (symbols[i] == symbol) return point[i];
      }
      return std::nullopt;
    });
  }

  SymContext context;
  std::array<SymExpr, kSymbolCount> symbols;
};

TEST_F(SymPropertyTest, simplified_expressions_keep_their_values) {
  Generator generator(1);
  size_t compared = 0;
  for (int i = 0; i < 10000; ++i) {
    Tree tree = i % 4 == 0 ? generator.condition(4) : generator.number(4);
    SymExpr built = build(tree);
    for (int sample = 0; sample < 6; ++sample) {
      Point point = generator.point();
      auto expected = direct_value(tree, point);
      auto actual = evaluate(built, point);
      if (!expected || !actual || !fits_int64(*expected)) continue;
      ++compared;
      ASSERT_EQ(*actual, static_cast<int64_t>(*expected))
          << context.to_text(built) << " at " << point[0] << ' ' << point[1] << ' ' << point[2] << ' ' << point[3];
    }
  }
  EXPECT_GT(compared, 30000u);
}

TEST_F(SymPropertyTest, printed_text_reads_back_to_the_same_handle) {
  Generator generator(2);
  for (int i = 0; i < 10000; ++i) {
    SymExpr built = build(i % 4 == 0 ? generator.condition(4) : generator.number(4));
    std::string text = context.to_text(built);
    auto from_text = context.parse_text(text);
    ASSERT_TRUE(from_text.has_value()) << text << ": " << from_text.error().message;
    ASSERT_EQ(*from_text, built) << text << " read as " << context.to_text(*from_text);
    std::string srepr = context.to_srepr(built);
    auto from_srepr = context.parse_srepr(srepr);
    ASSERT_TRUE(from_srepr.has_value()) << srepr << ": " << from_srepr.error().message;
    ASSERT_EQ(*from_srepr, built) << srepr << " read as " << context.to_srepr(*from_srepr);
  }
}

TEST_F(SymPropertyTest, text_is_the_same_in_a_context_with_another_history) {
  Generator generator(3);
  SymContext other;
  other.symbol("y");
  other.symbol("x");
  other.symbol("n", {.is_nonnegative = true});
  other.symbol("s", {.is_positive = true});
  for (int i = 0; i < 3000; ++i) {
    std::string text = context.to_text(build(generator.number(4)));
    auto result = other.parse_text(text);
    ASSERT_TRUE(result.has_value()) << text;
    ASSERT_EQ(other.to_text(*result), text);
  }
}

TEST_F(SymPropertyTest, substitution_commutes_with_evaluation) {
  Generator generator(4);
  size_t compared = 0;
  for (int i = 0; i < 5000; ++i) {
    SymExpr built = build(generator.number(4));
    SymExpr for_x = build(generator.number(1));
    SymExpr substituted = context.substitute(built, [&](SymExpr symbol) -> std::optional<SymExpr> {
      return symbol == symbols[2] ? std::optional(for_x) : std::nullopt;
    });
    for (int sample = 0; sample < 4; ++sample) {
      Point point = generator.point();
      auto actual = evaluate(substituted, point);
      auto x = evaluate(for_x, point);
      if (!x || !actual) continue;
      Point replaced = point;
      replaced[2] = *x;
      auto expected = evaluate(built, replaced);
      if (!expected) continue;
      ++compared;
      ASSERT_EQ(*actual, *expected) << context.to_text(built) << " with x = " << context.to_text(for_x);
    }
  }
  EXPECT_GT(compared, 10000u);
}

TEST_F(SymPropertyTest, ranges_enclose_all_values) {
  Generator generator(5);
  const std::array<SymRange, kSymbolCount> ranges = {SymRange{2, 9}, {0, 5}, {-9, 9}, {-4, SymRange::kNoMax}};
  for (size_t i = 0; i < kSymbolCount; ++i) ASSERT_TRUE(context.set_range(symbols[i], ranges[i]));
  size_t bounded = 0;
  for (int i = 0; i < 10000; ++i) {
    SymExpr built = build(i % 4 == 0 ? generator.condition(3) : generator.number(3));
    SymRange range = context.range(built);
    bounded += range.max != SymRange::kNoMax ? 1 : 0;
    for (int sample = 0; sample < 6; ++sample) {
      Point point = generator.point();
      for (size_t j = 0; j < kSymbolCount; ++j) point[j] = std::clamp(point[j], ranges[j].min, ranges[j].max);
      auto value = evaluate(built, point);
      if (!value) continue;
      ASSERT_TRUE(range.min <= *value && *value <= range.max)
          << context.to_text(built) << " is " << *value << " outside " << range.min << " … " << range.max;
    }
  }
  EXPECT_GT(bounded, 3000u);
}

TEST_F(SymPropertyTest, proofs_hold_at_every_sample) {
  Generator generator(6);
  const std::array<SymRange, kSymbolCount> ranges = {SymRange{2, 9}, {0, 5}, {-9, 9}, {-4, SymRange::kNoMax}};
  for (size_t i = 0; i < kSymbolCount; ++i) ASSERT_TRUE(context.set_range(symbols[i], ranges[i]));
  // y is a function of the others from here on.
  ASSERT_TRUE(context.unify(symbols[3], context.add(symbols[2], context.integer(5))));
  size_t proved = 0;
  for (int i = 0; i < 10000; ++i) {
    SymExpr condition = build(generator.condition(3));
    auto known = context.prove(condition);
    if (!known) continue;
    proved += condition.as_boolean() ? 0 : 1;
    for (int sample = 0; sample < 6; ++sample) {
      Point point = generator.point();
      for (size_t j = 0; j < kSymbolCount; ++j) point[j] = std::clamp(point[j], ranges[j].min, ranges[j].max);
      point[3] = point[2] + 5;
      auto value = evaluate(condition, point);
      if (!value) continue;
      ASSERT_EQ(*value != 0, *known) << context.to_text(condition);
    }
  }
  EXPECT_GT(proved, 500u);
}

TEST_F(SymPropertyTest, equal_polynomials_are_proved_equal) {
  Generator generator(7);
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    // (a + b)*(c + d) multiplied out by hand, with remainders and quotients as factors.
    std::array<SymExpr, 4> parts;
    for (SymExpr& part : parts) part = build(generator.number(1));
    SymExpr product = context.mul(context.add(parts[0], parts[1]), context.add(parts[2], parts[3]));
    SymExpr expanded = context.integer(0);
    for (size_t left : {0, 1}) {
      for (size_t right : {2, 3}) expanded = context.add(expanded, context.mul(parts[left], parts[right]));
    }
    // Constants that overflow when multiplied out can't be compared.
    std::string texts = context.to_text(product) + context.to_text(expanded);
    auto has = [&](const char* part) { return texts.find(part) != std::string::npos; };
    if (has("Add(") || has("Mul(") || has("92233720368547758")) continue;
    ++compared;
    EXPECT_EQ(context.prove_equal(product, expanded), true) << context.to_text(product);
  }
  EXPECT_GT(compared, 150);
}

TEST_F(SymPropertyTest, random_text_never_crashes) {
  Generator generator(8);
  static constexpr std::string_view kPieces[] = {"x",          "s",
                                                 "(",          ")",
                                                 ",",          "+",
                                                 "-",          "*",
                                                 "//",         "%",
                                                 "**",         "<",
                                                 "==",         "and ",
                                                 "not ",       "min(",
                                                 "ite(",       "1",
                                                 "2.5",        "`",
                                                 "true",       "Add(",
                                                 "Integer(3)", "Mul(",
                                                 "Mod(",       "9223372036854775807",
                                                 "FloorDiv(",  "Symbol('x')",
                                                 "Pow(",       " "};
  size_t accepted = 0;
  for (int i = 0; i < 30000; ++i) {
    std::string text;
    for (int64_t n = generator.pick(1, 12); n > 0; --n) {
      text += kPieces[static_cast<size_t>(generator.pick(0, static_cast<int64_t>(std::size(kPieces)) - 1))];
    }
    auto from_text = context.parse_text(text);
    if (from_text) {
      ++accepted;
      ASSERT_EQ(context.parse_text(context.to_text(*from_text)), *from_text) << text;
    }
    auto from_srepr = context.parse_srepr(text);
    if (from_srepr) {
      ++accepted;
      ASSERT_EQ(context.parse_srepr(context.to_srepr(*from_srepr)), *from_srepr) << text;
    }
  }
  EXPECT_GT(accepted, 500u);
}

}  // namespace
}  // namespace argosy
