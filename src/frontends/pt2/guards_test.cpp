#include "frontends/pt2/guards.h"

#include <gtest/gtest.h>

#include "frontends/pt2/graph_json_testing.h"

namespace argosy {
namespace {

using T = GraphText;

class Guards : public testing::Test {
 protected:
  void SetUp() override {
    GraphText text;
    text.tensor_values.push_back(T::tensor("x", 7, {T::symbol("s0"), T::symbol("s1")}, {T::symbol("s1"), T::size(1)}));
    text.add_declared_input("x");
    text.tensor_values.push_back(
        T::tensor("past_0_keys", 7, {T::symbol("s2"), T::size(32)}, {T::size(32), T::size(1)}));
    text.add_declared_input("past_0_keys").add_output("x");
    Result<Component> component = read_test_graph(text.text(), program_);
    ASSERT_TRUE(component.has_value()) << to_text(component.error());
    component_ = *std::move(component);
  }

  SymExpr symbol(std::string_view name) { return component_.symbols->symbol(name); }
  std::string parsed(std::string_view text) {
    std::optional<SymExpr> condition = parse_guard(text, component_);
    return condition ? component_.symbols->to_text(*condition) : "none";
  }

  Program program_;
  Component component_;
};

TEST_F(Guards, parses_arithmetic_of_sizes) {
  SymContext& symbols = *component_.symbols;
  SymExpr s0 = symbol("s0"), s1 = symbol("s1"), s2 = symbol("s2");
  EXPECT_EQ(parse_guard("L['x'].size()[0] + ((-1)*L['x'].size()[1]) <= 0", component_),
            symbols.compare(SymKind::kLe, symbols.sub(s0, s1), symbols.integer(0)));
  EXPECT_EQ(
      parse_guard("(L['x'].size()[0] // 4) % 2 == L['past'][0].keys.size()[0]", component_),
      symbols.compare(SymKind::kEq, symbols.mod(symbols.floor_div(s0, symbols.integer(4)), symbols.integer(2)), s2));
  EXPECT_EQ(parse_guard("max(1, L['x'].size()[0]) < 9 and L['x'].size()[1] > 3", component_),
            symbols.logical_and(symbols.compare(SymKind::kLt, symbols.max(symbols.integer(1), s0), symbols.integer(9)),
                                symbols.compare(SymKind::kGt, s1, symbols.integer(3))));
}

TEST_F(Guards, leaves_out_what_it_does_not_understand) {
  EXPECT_EQ(parsed("math.ceil(L['x'].size()[0]) == 2"), "none");
  EXPECT_EQ(parsed("L['z'].size()[0] == 2"), "none");
  EXPECT_EQ(parsed("L['x'].size()[7] == 2"), "none");
  EXPECT_EQ(parsed("L['x'].size()[0]**2 == 4"), "none");
  EXPECT_EQ(parsed("L['x'].size()[0] == 2.5"), "none");
  EXPECT_EQ(parsed("(L['x'].size()[0] == 2"), "none");
  EXPECT_EQ(parsed("L['x'].size()[0] == 2 junk"), "none");
  EXPECT_EQ(parsed(""), "none");
  EXPECT_EQ(parsed(std::string(5000, '(')), "none");
  EXPECT_EQ(parsed(std::string(5000, '-') + "1 == 1"), "none");
}

TEST_F(Guards, equalities_unify_sizes) {
  add_guards(component_, {"L['x'].size()[0] == L['past'][0].keys.size()[0]"});
  EXPECT_EQ(component_.symbols->prove_equal(symbol("s0"), symbol("s2")), true);
  EXPECT_EQ(component_.symbols->prove_equal(symbol("s0"), symbol("s1")), std::nullopt);
  ASSERT_EQ(component_.guards.size(), 1u);
  EXPECT_TRUE(component_.guards[0].condition.is_valid());
}

TEST_F(Guards, inequalities_narrow_ranges) {
  add_guards(component_,
             {"L['x'].size()[0] <= 64", "3 < L['x'].size()[0]", "L['x'].size()[1] > 5 or L['x'].size()[1] < 2"});
  EXPECT_EQ(component_.symbols->range(symbol("s0")), (SymRange{4, 64}));
  EXPECT_EQ(component_.symbols->range(symbol("s1")).min, 1);
}

TEST_F(Guards, contradictions_leave_ranges_alone) {
  add_guards(component_, {"L['x'].size()[0] <= 64", "L['x'].size()[0] >= 100"});
  EXPECT_EQ(component_.symbols->range(symbol("s0")).max, 64);
}

TEST_F(Guards, fixed_dims_are_listed) {
  add_guards(component_, {"L['past'][0].keys.size()[1] == 32", "strange(text)"});
  ASSERT_EQ(component_.specialized.size(), 1u);
  EXPECT_EQ(component_.specialized[0].input, "past_0_keys");
  EXPECT_EQ(component_.specialized[0].dim, 1);
  EXPECT_EQ(component_.specialized[0].value, 32);
  ASSERT_EQ(component_.guards.size(), 2u);
  EXPECT_EQ(component_.guards[1].text, "strange(text)");
  EXPECT_FALSE(component_.guards[1].condition.is_valid());
}

}  // namespace
}  // namespace argosy
