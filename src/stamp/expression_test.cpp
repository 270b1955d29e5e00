#include "stamp/expression.h"

#include <gtest/gtest.h>

namespace argosy::stamp {
namespace {

TEST(Expression, SumsAndProductsAreSortedAndExpanded) {
  EXPECT_EQ(canonical_expression("Add(Symbol('b', integer=True), Symbol('a', integer=True))"),
            "Add(Symbol('a', integer=True), Symbol('b', integer=True))");
  EXPECT_EQ(canonical_expression("Mul(Add(Symbol('a'), Symbol('b')), Symbol('a'))"),
            canonical_expression("Add(Pow(Symbol('a'), Integer(2)), Mul(Symbol('b'), Symbol('a')))"));
  EXPECT_EQ(canonical_expression("Mul(Integer(2), Add(Symbol('a'), Integer(3)))"),
            "Add(Integer(6), Mul(Integer(2), Symbol('a')))");
}

TEST(Expression, EqualTermsAreOneAndCancel) {
  EXPECT_EQ(canonical_expression("Add(Symbol('a'), Symbol('a'))"), "Mul(Integer(2), Symbol('a'))");
  EXPECT_EQ(canonical_expression("Add(Symbol('a'), Mul(Integer(-1), Symbol('a')))"), "Integer(0)");
}

TEST(Expression, OtherCallsAreKeptWithTheirArgumentsInOrder) {
  EXPECT_EQ(canonical_expression("Mul(FloorDiv(Add(Symbol('b'), Symbol('a')), Integer(2)), Integer(2))"),
            "Mul(Integer(2), FloorDiv(Add(Symbol('a'), Symbol('b')), Integer(2)))");
  EXPECT_NE(canonical_expression("Mod(Symbol('a'), Symbol('b'))"),
            canonical_expression("Mod(Symbol('b'), Symbol('a'))"));
}

TEST(Expression, WhatCannotBeReadStaysAsItIs) {
  for (const char* text : {"", "3", "Add(", "Add(Symbol('a'), oops)", "Integer(99999999999999999999)"}) {
    EXPECT_EQ(canonical_expression(text), text);
  }
}

TEST(Expression, JsonIsChangedInExpressionsOnly) {
  EXPECT_EQ(
      with_canonical_expressions(R"x({"name":"Add(b, a)","expr_str":"Add(Symbol('b'), Symbol('a'))","as_int":1})x"),
      R"x({"name":"Add(b, a)","expr_str":"Add(Symbol('a'), Symbol('b'))","as_int":1})x");
}

TEST(Expression, SymbolsAreNumberedAsTheyAreMet) {
  Symbols one, other;
  EXPECT_EQ(one.renamed("Symbol('s9', positive=True)"), other.renamed("Symbol('s2', positive=True)"));
  EXPECT_EQ(one.renamed("Add(Symbol('s5'), Symbol('s9'))"), other.renamed("Add(Symbol('s7'), Symbol('s2'))"));
  EXPECT_NE(one.renamed("Mul(Integer(2), Symbol('s5'))"), one.renamed("Mul(Integer(2), Symbol('s9'))"));
}

}  // namespace
}  // namespace argosy::stamp
