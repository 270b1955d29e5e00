#include "ir/rewriter.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace argosy {
namespace {

class RewriterTest : public testing::Test {
 protected:
  ValueId unary(ValueId operand, std::string name = "") {
    NodeId node = rewriter_.create(OpId{0}, {Argument(operand)}, {NewValue{std::move(name), TensorType{}}});
    return graph_[node].outputs[0];
  }
  std::vector<std::string> order() const {
    std::vector<std::string> names;
    for (NodeId node : graph_.nodes()) names.push_back(graph_[graph_[node].outputs[0]].name);
    return names;
  }

  Graph graph_;
  Rewriter rewriter_{graph_};
  ValueId x_ = rewriter_.add_input({"x", TensorType{}});
};

using Names = std::vector<std::string>;

TEST_F(RewriterTest, keeps_order_uses_and_names) {
  ValueId a = unary(x_, "a");
  ValueId c = unary(a, "c");
  rewriter_.set_outputs({Argument(c)});
  rewriter_.insert_before(graph_[c].producer);
  ValueId b = unary(a, "a");
  EXPECT_NE(graph_[b].name, "a");
  EXPECT_EQ(order(), (Names{"a", graph_[b].name, "c"}));
  EXPECT_EQ(graph_[a].uses.size(), 2u);
  EXPECT_EQ(graph_.find("c"), c);
  rewriter_.replace_uses(a, x_);
  EXPECT_EQ(graph_[x_].uses.size(), 3u);
  EXPECT_TRUE(graph_[a].uses.empty());
}

TEST_F(RewriterTest, replace_rewires_lists_and_outputs) {
  ValueId a = unary(x_, "a");
  NodeId list = rewriter_.create(OpId{1}, {Argument(ValueList{a, ValueId{}, x_, a}), Argument(IntList{int64_t{3}})},
                                 {NewValue{"l", TensorType{}}});
  rewriter_.set_outputs({Argument(a), Argument(graph_[list].outputs[0]), Argument(int64_t{4})});
  rewriter_.replace(graph_[a].producer, std::vector{x_});
  EXPECT_EQ(graph_[list].arguments[0], Argument(ValueList{x_, ValueId{}, x_, x_}));
  EXPECT_EQ(graph_.outputs()[0], Argument(x_));
  EXPECT_EQ(graph_[x_].uses.size(), 4u);
  EXPECT_EQ(graph_.node_count(), 1u);
  EXPECT_EQ(graph_.find("a"), std::nullopt);
}

TEST_F(RewriterTest, iteration_survives_erasing_the_current_node) {
  for (int i = 0; i < 6; ++i) unary(x_);
  size_t seen = 0;
  for (NodeId node : graph_.nodes()) {
    if (++seen % 2 == 0) rewriter_.erase(node);
  }
  EXPECT_EQ(seen, 6u);
  EXPECT_EQ(graph_.node_count(), 3u);
  compact(graph_);
  EXPECT_EQ(graph_.node_limit(), 3u);
  EXPECT_EQ(graph_[graph_.inputs()[0]].uses.size(), 3u);
}

TEST_F(RewriterTest, many_insertions_at_one_place_keep_the_order) {
  ValueId last = unary(x_, "last");
  ValueId previous = x_;
  for (int i = 0; i < 200; ++i) {
    rewriter_.insert_before(graph_[last].producer);
    previous = unary(previous);
  }
  rewriter_.set_argument(graph_[last].producer, 0, Argument(previous));
  EXPECT_EQ(graph_.node_count(), 201u);
  EXPECT_TRUE(graph_.comes_before(graph_[previous].producer, graph_[last].producer));
  EXPECT_EQ(order().back(), "last");
}

TEST_F(RewriterTest, rejects_edits_that_break_the_graph) {
  ValueId a = unary(x_, "a");
  ValueId b = unary(a, "b");
  EXPECT_THROW(rewriter_.erase(graph_[a].producer), InternalError);
  EXPECT_THROW(rewriter_.set_argument(graph_[a].producer, 0, Argument(b)), InternalError);
  EXPECT_THROW(rewriter_.erase_input(x_), InternalError);
  EXPECT_THROW(unary(ValueId{77}), InternalError);
}

TEST_F(RewriterTest, knows_whether_it_changed_anything) {
  Rewriter other(graph_);
  EXPECT_FALSE(other.has_changed());
  other.replace_uses(x_, x_);
  EXPECT_FALSE(other.has_changed());
  other.rename(x_, "y");
  EXPECT_TRUE(other.has_changed());
}

}  // namespace
}  // namespace argosy
