#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "tensor/sym.h"

namespace argosy {
namespace {

const std::string kS0 = "Symbol('s0', positive=True, integer=True)";
const std::string kS1 = "Symbol('s1', positive=True, integer=True)";
const std::string kU0 = "Symbol('u0', integer=True)";
const std::string kF = "Symbol('zf', real=True)";

/// "s0" for the long symbol, so that tables can be read.
std::string with_symbols(std::string_view text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '$': result += kS0; break;
      case '&': result += kS1; break;
      case '?': result += kU0; break;
      case '~': result += kF; break;
      default: result += c;
    }
  }
  return result;
}

std::string message_of(const Result<SymExpr>& result) { return result ? "no error" : result.error().message; }

// The texts on the left are what sympy prints for expressions of torch, those on the right what sympy accepts as equal.
TEST(SymSreprTest, reads_and_writes_what_torch_writes) {
  struct Row {
    const char* srepr;
    const char* text;
    const char* written;  // "" if as read
  };
  const Row kTable[] = {
      {"$", "s0", ""},
      {"Integer(-3)", "-3", ""},
      {"Mul(Integer(256), $)", "256*s0", ""},
      {"Add($, Mul(Integer(-1), &))", "s0 - s1", ""},
      {"Add($, Integer(1))", "s0 + 1", ""},
      {"Add(Integer(1), $)", "s0 + 1", "Add($, Integer(1))"},
      {"Pow($, Integer(2))", "s0**2", ""},
      {"Pow($, &)", "s0**s1", ""},
      {"Pow($, Integer(-1))", "s0**(-1)", ""},
      {"Pow($, Rational(1, 2))", "s0**Rational(1, 2)", ""},
      {"Min(Integer(8), $, &)", "min(s0, s1, 8)", "Min($, &, Integer(8))"},
      {"Max($, &)", "max(s0, s1)", ""},
      {"FloorDiv(Add($, &), Integer(2))", "(s0 + s1) // 2", ""},
      {"Add(FloorDiv(Add($, Integer(-1)), Integer(2)), Integer(1))", "(s0 - 1) // 2 + 1", ""},
      {"CleanDiv(?, &)", "u0 // s1", "FloorDiv(?, &)"},
      {"CeilDiv(?, Integer(3))", "(u0 + 2) // 3", "FloorDiv(Add(?, Integer(2)), Integer(3))"},
      {"CeilDiv(?, &)", "CeilDiv(u0, s1)", ""},
      {"Mod($, Integer(2))", "s0 % 2", ""},
      {"PythonMod(?, Integer(3))", "u0 % 3", ""},
      {"Mod(?, Integer(3))", "u0 % 3", "PythonMod(?, Integer(3))"},
      {"Mod(Add(Integer(4), Mul(Integer(-1), Mod($, Integer(4)))), Integer(4))", "(-(s0 % 4) + 4) % 4",
       "Mod(Add(Mul(Integer(-1), Mod($, Integer(4))), Integer(4)), Integer(4))"},
      {"ModularIndexing(?, Integer(4), Integer(7))", "ModularIndexing(u0, 4, 7)", ""},
      {"IntTrueDiv($, Integer(3))", "s0 / 3", ""},
      {"FloatTrueDiv(~, Float('3.5', precision=53))", "zf / 3.5", ""},
      {"FloatTrueDiv($, &)", "FloatTrueDiv(s0, s1)", ""},
      {"CeilToInt(FloatTrueDiv(ToFloat($), Float('2.0', precision=53)))", "CeilToInt(ToFloat(s0) / 2.0)", ""},
      {"TruncToInt(Mul(Float('1.5', precision=53), ToFloat($)))", "TruncToInt(1.5*ToFloat(s0))", ""},
      {"RoundToInt(~)", "RoundToInt(zf)", ""},
      {"PowByNatural($, &)", "PowByNatural(s0, s1)", ""},
      {"PowByNatural($, Integer(2))", "s0**2", "Pow($, Integer(2))"},
      {"FloatPow(~, Float('2.5', precision=53))", "FloatPow(zf, 2.5)", ""},
      {"LShift($, Integer(3))", "8*s0", "Mul(Integer(8), $)"},
      {"RShift($, Integer(3))", "s0 // 8", "FloorDiv($, Integer(8))"},
      {"Float('0.10000000000000001', precision=53)", "0.1", ""},
      {"Float('1.0000000000000001e+300', precision=53)", "1e+300", ""},
      {"Float('-2.0', precision=53)", "-2.0", ""},
      {"oo", "inf", ""},
      {"-oo", "-inf", ""},
      {"nan", "nan", ""},
      {"int_oo", "int_oo()", ""},
      {"-int_oo", "neg_int_oo()", ""},
      {"Equality($, &)", "s0 == s1", ""},
      {"Eq($, &)", "s0 == s1", "Equality($, &)"},
      {"Unequality(?, Integer(3))", "u0 != 3", ""},
      {"Ne(?, Integer(3))", "u0 != 3", "Unequality(?, Integer(3))"},
      {"StrictLessThan($, &)", "s0 < s1", ""},
      {"Lt($, &)", "s0 < s1", "StrictLessThan($, &)"},
      {"LessThan($, &)", "s0 <= s1", ""},
      {"Le($, &)", "s0 <= s1", "LessThan($, &)"},
      {"StrictGreaterThan($, &)", "s0 > s1", ""},
      {"Gt($, &)", "s0 > s1", "StrictGreaterThan($, &)"},
      {"GreaterThan($, &)", "s0 >= s1", ""},
      {"Ge($, &)", "s0 >= s1", "GreaterThan($, &)"},
      {"And(StrictLessThan($, &), StrictGreaterThan(?, Integer(3)))", "s0 < s1 and u0 > 3", ""},
      {"Or(StrictLessThan($, &), StrictGreaterThan(?, Integer(3)))", "s0 < s1 or u0 > 3", ""},
      {"Not(Symbol('b'))", "not b", ""},
      {"Xor(StrictLessThan($, &), StrictGreaterThan(?, Integer(3)))", "Xor(s0 < s1, u0 > 3)", ""},
      {"true", "true", ""},
      {"false", "false", ""},
      {"Piecewise(ExprCondPair($, StrictLessThan($, &)), ExprCondPair(&, true))", "ite(s0 < s1, s0, s1)", ""},
      {"Piecewise(ExprCondPair(Integer(1), StrictLessThan($, &)), ExprCondPair(Integer(2), StrictLessThan($, "
       "Integer(9))), "
       "ExprCondPair(Integer(3), true))",
       "ite(s0 < s1, 1, ite(s0 < 9, 2, 3))", ""},
      {"Piecewise((Integer(1), StrictLessThan($, &)), (Integer(2), True))", "ite(s0 < s1, 1, 2)",
       "Piecewise(ExprCondPair(Integer(1), StrictLessThan($, &)), ExprCondPair(Integer(2), true))"},
      {"Where(StrictLessThan($, &), $, &)", "ite(s0 < s1, s0, s1)",
       "Piecewise(ExprCondPair($, StrictLessThan($, &)), ExprCondPair(&, true))"},
      {"Identity($)", "s0", "$"},
      {"Symbol('n0', integer=True, nonnegative=True)", "n0", ""},
      {"Symbol(\"it's\", integer=True)", "`it's`", ""},
      {"Symbol('a`\"\\'\\\\', integer=True)", "`a\\`\"'\\\\`", ""},
      {"Symbol('min', integer=True)", "`min`", ""},
      {" Add( $ ,Integer( 1 ) ) ", "s0 + 1", "Add($, Integer(1))"},
      {"2", "2", "Integer(2)"},
  };
  for (const Row& row : kTable) {
    SymContext context;
    std::string srepr = with_symbols(row.srepr);
    auto result = context.parse_srepr(srepr);
    ASSERT_TRUE(result.has_value()) << srepr << ": " << message_of(result);
    EXPECT_EQ(context.to_text(*result), row.text) << srepr;
    std::string written = context.to_srepr(*result);
    EXPECT_EQ(written, row.written[0] == '\0' ? srepr : with_symbols(row.written));
    EXPECT_EQ(context.parse_srepr(written), *result) << written;
    auto reread = context.parse_text(row.text);
    ASSERT_TRUE(reread.has_value()) << row.text << ": " << message_of(reread);
    EXPECT_EQ(*reread, *result) << row.text;
  }
}

// torch bounds some unbacked symbols by multiples of sys.maxsize.
TEST(SymSreprTest, integers_beyond_64_bits_are_kept) {
  const std::pair<const char*, const char*> kTable[] = {
      {"Integer(9223372036854775807)", "9223372036854775807"},
      {"Integer(-9223372036854775808)", "-9223372036854775808"},
      {"Integer(9223372036854775808)", "BigInteger(9, 223372036854775808)"},
      {"Integer(-9223372036854775809)", "BigInteger(-9, -223372036854775809)"},
      {"Integer(36893488147419103224)", "BigInteger(36, 893488147419103224)"},
      {"Integer(1000000000000000000000000000000000000)", "BigInteger(1, 0, 0)"},
      {"LessThan(Symbol('u1', integer=True), Integer(36893488147419103224))",
       "u1 <= BigInteger(36, 893488147419103224)"},
  };
  for (auto [srepr, text] : kTable) {
    SymContext context;
    auto result = context.parse_srepr(srepr);
    ASSERT_TRUE(result.has_value()) << srepr << ": " << message_of(result);
    EXPECT_EQ(context.to_text(*result), text);
    EXPECT_EQ(context.to_srepr(*result), srepr);
    EXPECT_EQ(context.parse_text(text), *result);
  }
  SymContext context;
  EXPECT_EQ(context.to_text(*context.parse_srepr("Integer(000000000000000000000007)")), "7");
  SymExpr bound = *context.parse_text("u1 <= BigInteger(36, 893488147419103224)");
  EXPECT_EQ(context.prove(bound), std::nullopt);
  ASSERT_TRUE(context.set_range(context.symbol("u1"), {0, 100}));
  EXPECT_EQ(context.prove(bound), true);
  EXPECT_EQ(context.prove(*context.parse_text("u1 < BigInteger(-10, 0)")), false);
  // Not numbers: they are kept as functions of unknown value.
  for (const char* text : {"BigInteger(1, 5)", "BigInteger(0, 5, 5)", "BigInteger(9, -9, 9)", "BigInteger(u1, 1)"}) {
    SymExpr call = *context.parse_text(text);
    EXPECT_FALSE(call.is_integer_valued()) << text;
    EXPECT_EQ(context.to_text(call), text);
  }
}

TEST(SymSreprTest, piecewise_without_default_is_nan_elsewhere) {
  SymContext context;
  auto result = context.parse_srepr("Piecewise(ExprCondPair(Integer(1), StrictLessThan(" + kS0 + ", Integer(4))))");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(context.to_text(*result), "ite(s0 < 4, 1, nan)");
}

TEST(SymSreprTest, rejects_bad_text) {
  const std::pair<std::string, const char*> kTable[] = {
      {"", "expected a name"},
      {"   ", "expected a name"},
      {"Add", "without arguments"},
      {"Add(", "expected a name"},
      {"Add()", "Add with 0 arguments"},
      {"Add(Integer(1)", "expected ','"},
      {"Add(Integer(1),)", "expected a name"},
      {"Add(Integer(1) Integer(2))", "expected ','"},
      {"Integer()", "expected an integer"},
      {"Integer(x)", "expected an integer"},
      {"Integer(1.5)", "expected ')'"},
      {"9223372036854775808", "does not fit in 64 bits"},
      {"Integer(" + std::string(1001, '1') + ")", "integer of 1001 digits"},
      {"Integer(1)Integer(2)", "text after the end"},
      {"-Integer(2)", "after '-'"},
      {"Symbol(s0)", "in quotes"},
      {"Symbol('s0)", "without closing quote"},
      {"Symbol('')", "empty name"},
      {"Symbol('a\nb')", "control character"},
      {"Symbol('a\\nb')", "unknown escape"},
      {"Symbol('s0', integer)", "expected '='"},
      {"Symbol('s0', =True)", "assumption"},
      {"Symbol('s0', integer=1)", "True or False"},
      {"Symbol('s0' integer=True)", "expected ','"},
      {"Symbol('" + std::string(2000, 'a') + "')", "longer than"},
      {"Float('x')", "malformed number"},
      {"Float('1.5', precision=100)", "float of 100 bits"},
      {"Float('1.5', digits=3)", "precision=53"},
      {"Rational(1, 0)", "denominator 0"},
      {"Piecewise()", "without pieces"},
      {"Piecewise(Integer(1))", "expected ExprCondPair"},
      {"Piecewise(ExprCondPair(Integer(1)))", "expected ','"},
      {"Piecewise(ExprCondPair(Integer(1), Integer(2)))", "a number where a condition"},
      {"FloorDiv(Integer(1), Integer(2), Integer(3))", "FloorDiv with 3 arguments"},
      {"Not(Integer(1), Integer(2))", "Not with 2 arguments"},
      {"Not(Integer(1))", "a number where a condition"},
      {"And(Integer(1), true)", "a number where a condition"},
      {"Add(true, Integer(1))", "a condition where a number"},
      {"Equality(true, Integer(1))", "a number compared with a condition"},
      {"Where(true, Integer(1), false)", "a choice between"},
      {"min(Integer(1))", "not a function"},
      {"s0", "without arguments"},
      {"__import__('os')", "expected a name"},
      {"Dummy('d', dummy_index=3)", "expected a name"},
      {"(Integer(1))", "expected a name"},
  };
  for (const auto& [text, expected] : kTable) {
    SymContext context;
    auto result = context.parse_srepr(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_NE(result.error().message.find(expected), std::string::npos) << text << ": " << message_of(result);
  }
}

TEST(SymTextTest, round_trips) {
  const char* kTable[] = {
      "-x",
      "x - 9223372036854775807",
      "x + -9223372036854775808*y",
      "-9223372036854775808",
      "-9223372036854775808*x",
      "(-2)**x",
      "-2**x",
      "2**(-x)",
      "x**y**z",
      "(x**y)**z",
      "-1.5",
      "-0.0",
      "1.5*x",
      "-1.5*x",
      "2*-1.5*x",
      "x - 1.5",
      "-1*1.5",
      "x / y / z",
      "x / (y / z)",
      "x*y // z",
      "x*(y // z)",
      "-(x // 3)*y",
      "-1*(x + 1)*y",
      "-(x + y)**2",
      "x // y % z",
      "x % (y // z)",
      "-x**2",
      "f()",
      "f(x, g(y) + 1)",
      "not (x / 2 < 1.5)",
      "x < y and (x < z or y < z)",
      "x < y or x < z and y < z",
      "(x == y) == (y == z)",
      "ite(x < y, ite(y < z, 1, 2), 3)",
      "min(x, max(y, z, 3), 5)",
      "inf",
      "-inf",
      "nan",
      "1e+300",
      "1e-07",
      "`not an identifier` + `and`",
      "`+` + `\\\\`",
      "Add(x, 9223372036854775807, 5)",
      "Mul(Add(x, 3), 2)",
      "Add()",
      "foo(x < y)",
      "2**(-1)*x",
      "-2**(-1)",
  };
  for (const char* text : kTable) {
    SymContext context;
    auto first = context.parse_text(text);
    ASSERT_TRUE(first.has_value()) << text << ": " << message_of(first);
    std::string printed = context.to_text(*first);
    auto second = context.parse_text(printed);
    ASSERT_TRUE(second.has_value()) << text << " -> " << printed << ": " << message_of(second);
    EXPECT_EQ(*second, *first) << text << " -> " << printed;
    auto third = context.parse_srepr(context.to_srepr(*first));
    ASSERT_TRUE(third.has_value()) << context.to_srepr(*first) << message_of(third);
    EXPECT_EQ(*third, *first) << text << " -> " << context.to_srepr(*first);
  }
}

TEST(SymTextTest, operators_bind_as_in_python) {
  const std::pair<const char*, int64_t> kTable[] = {
      {"1 + 2*3", 7},       {"2*3**2", 18},         {"-3**2", -9},
      {"2**3**2", 512},     {"(1 + 2)*3", 9},       {"7 // 2*2", 6},
      {"2*7 // 4", 3},      {"7 - 2 - 1", 4},       {"-7 // 2", -4},
      {"-(7 // 2)", -3},    {"7 % 4 % 2", 1},       {"1 < 2 and 2 < 1", 0},
      {"not 1 < 2", 0},     {"1 + 1 == 2", 1},      {"true or false and false", 1},
      {"-2 * -3", 6},       {"- - 3", 3},           {"2 - -3", 5},
      {"min(3, 1 + 1)", 2}, {"1 == 2 or 3 > 2", 1}, {"100 - 10*2 + 1", 81},
      {"24 // 4 // 2", 3},  {"2**2*3", 12},         {"not not true", 1},
      {"5 % 3*2", 4},
  };
  for (auto [text, expected] : kTable) {
    SymContext context;
    auto result = context.parse_text(text);
    ASSERT_TRUE(result.has_value()) << text << ": " << message_of(result);
    EXPECT_EQ(context.evaluate(*result, [](SymExpr) { return std::nullopt; }), expected) << text;
  }
}

TEST(SymTextTest, rejects_bad_text) {
  const std::pair<std::string, const char*> kTable[] = {
      {"", "expected an operand"},
      {"x +", "expected an operand"},
      {"* x", "expected an operand"},
      {"x y", "text after the end"},
      {"(x", "expected ')'"},
      {"x)", "text after the end"},
      {"min()", "min without arguments"},
      {"ite(x < y, 1)", "ite takes 3 arguments, not 2"},
      {"min(x,)", "expected an operand"},
      {"min(x y)", "expected ','"},
      {"min", "'min' where an operand is needed"},
      {"and", "'and' where an operand is needed"},
      {"and(x)", "not a function"},
      {"FloorDiv(x, 2)", "not a function"},
      {"Symbol(x)", "not a function"},
      {"Add(x < y, 1)", "a condition where a number"},
      {"x < y < z", "chained comparison"},
      {"x + (y < z)", "a condition where a number"},
      {"not 3", "a number where a condition"},
      {"-true", "a condition where a number"},
      {"x and true", "a number where a condition"},
      {"(x < y) < (y < z)", "a condition where a number"},
      {"x == (y < z)", "a number compared with a condition"},
      {"12ab", "malformed number"},
      {"1.5.2", "text after the end"},
      {"1e", "malformed number"},
      {"99999999999999999999", "does not fit in 64 bits"},
      {"9223372036854775808", "does not fit in 64 bits"},
      {"`", "without closing quote"},
      {"``", "empty name"},
      {"`a\nb`", "control character"},
      {"x = y", "text after the end"},
      {"...", "expected an operand"},
      {std::string("x\0y", 3), "text after the end"},
      {"\xff", "expected an operand"},
      {std::string(2000, 'a'), "longer than"},
  };
  for (const auto& [text, expected] : kTable) {
    SymContext context;
    auto result = context.parse_text(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_NE(result.error().message.find(expected), std::string::npos) << text << ": " << message_of(result);
  }
}

std::string repeated(std::string_view part, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

TEST(SymTextTest, reads_as_deep_as_promised) {
  SymContext context;
  constexpr size_t kDepth = SymContext::kMaxDepth;
  std::string text = repeated("f(", kDepth) + "x" + repeated(")", kDepth);
  auto result = context.parse_text(text);
  ASSERT_TRUE(result.has_value()) << message_of(result);
  EXPECT_EQ(context.to_text(*result), text);
  EXPECT_EQ(context.parse_srepr(context.to_srepr(*result)), *result);
  auto deeper = context.parse_text("f(" + text + ")");
  ASSERT_FALSE(deeper.has_value());
  EXPECT_NE(deeper.error().message.find("nesting deeper than 256"), std::string::npos);
}

/// Each of these is refused, or read, in bounded time.
TEST(SymTextTest, hostile_text_ends_quickly) {
  constexpr size_t kLong = size_t{1} << 18;
  std::string distinct_factors = "a0";
  std::string distinct_terms = "Add(Integer(1)";
  std::string distinct_names = "min(a0";
  for (int i = 1; i < 30000; ++i) {
    distinct_factors += "*a" + std::to_string(i) + "//1";
    distinct_terms += ", Symbol('b" + std::to_string(i) + "')";
    distinct_names += ", a" + std::to_string(i);
  }
  std::string nested_sums = "x";
  for (int i = 0; i < 250; ++i) nested_sums = "(" + nested_sums + "*2 + " + repeated("y*z + ", 100) + "1) // 3";
  const std::string kTexts[] = {
      repeated("(", kLong),
      repeated("-", kLong - 1) + "x",
      repeated("not ", kLong / 5) + "(x < y)",
      repeated("x**", kLong / 4) + "x",
      repeated("x+", kLong / 3) + "x",
      repeated("x*", kLong / 3) + "x",
      repeated("x//2*", kLong / 6) + "x",
      repeated("x<y and ", kLong / 9) + "x<y",
      repeated("min(", 1000000) + "x",
      repeated("9", kLong),
      repeated("`", kLong),
      repeated("x", kLong),
      distinct_factors,
      distinct_names + ")",
      nested_sums,
      std::string(SymContext::kMaxTextLength + 1, ' '),
  };
  std::clock_t start = std::clock();
  for (const std::string& text : kTexts) {
    SymContext context;
    auto result = context.parse_text(text);
    EXPECT_TRUE(result.has_value() || !result.error().message.empty());
  }
  const std::string kSreprs[] = {
      repeated("Add(", 1000000),
      repeated("FloorDiv(Integer(1), ", 100000),
      distinct_terms + ")",
      repeated("-", kLong),
      "Min(" + repeated("Integer(1), ", 300000) + "Integer(0))",
      repeated("Piecewise(ExprCondPair(", 100000),
      "Piecewise(" + repeated("ExprCondPair(Integer(1), Not(Symbol('b'))), ", 50000) +
          "ExprCondPair(Integer(2), true))",
      "Symbol('" + std::string(kLong - 10, 'a') + "')",
  };
  for (const std::string& text : kSreprs) {
    SymContext context;
    auto result = context.parse_srepr(text);
    EXPECT_TRUE(result.has_value() || !result.error().message.empty());
  }
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC);
}

/// Sizes like those of a windowed vision model: nested divisions and remainders, thousands of integers.
TEST(SymTextTest, large_expressions_of_real_models_are_fast) {
  std::string size = kS0;
  for (int i = 0; i < 60; ++i) {
    std::string padded = "Add(" + size + ", Mod(Add(Integer(7), Mul(Integer(-1), Mod(" + kS0 + ", Integer(" +
                         std::to_string(i + 7) + ")))), Integer(7)))";
    size = "FloorDiv(" + padded + ", Integer(" + std::to_string(i % 3 + 2) + "))";
    size = "Mul(Integer(3), " + size + ", " + size.substr(0, 0) + kS1 + ")";
  }
  std::clock_t start = std::clock();
  SymContext context;
  for (int i = 0; i < 20; ++i) {
    auto result = context.parse_srepr(size);
    ASSERT_TRUE(result.has_value()) << message_of(result);
    EXPECT_EQ(context.parse_srepr(context.to_srepr(*result)), *result);
    EXPECT_EQ(context.parse_text(context.to_text(*result)), *result);
  }
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace argosy
