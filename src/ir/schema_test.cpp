#include "ir/schema.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

TEST(SchemaTest, reads_names_types_defaults_and_aliases) {
  OpSchema schema =
      parse_schema("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)").value();
  EXPECT_EQ(schema.name, "aten.add_.Tensor");
  ASSERT_EQ(schema.arguments.size(), 3u);
  EXPECT_EQ(schema.arguments[0].alias, "a");
  EXPECT_TRUE(schema.arguments[0].is_written);
  EXPECT_TRUE(schema.writes_any_argument());
  EXPECT_TRUE(schema.arguments[2].is_keyword_only);
  EXPECT_EQ(schema.arguments[2].default_value, Argument(int64_t{1}));
  ASSERT_EQ(schema.returns.size(), 1u);
  EXPECT_EQ(schema.returns[0].alias, "a");
}

TEST(SchemaTest, reads_lists_and_optionals) {
  OpSchema schema = parse_schema(
                        "aten::x(Tensor?[] indices, int[2]? pad, SymInt[2] stride=1, float[]? s=None, Tensor(a)[] t, "
                        "bool[3] m) -> (Tensor a, Tensor[] b)")
                        .value();
  EXPECT_EQ(schema.name, "aten.x.default");
  EXPECT_TRUE(schema.arguments[0].type.has_optional_items);
  EXPECT_FALSE(schema.arguments[0].type.is_optional);
  EXPECT_TRUE(schema.arguments[1].type.is_optional);
  EXPECT_EQ(schema.arguments[1].type.list_size, 2);
  EXPECT_EQ(schema.arguments[2].default_value, Argument(IntList{int64_t{1}, int64_t{1}}));
  EXPECT_EQ(schema.arguments[3].default_value, Argument(None{}));
  EXPECT_EQ(schema.arguments[4].alias, "a");
  EXPECT_TRUE(schema.arguments[4].type.is_list);
  ASSERT_EQ(schema.returns.size(), 2u);
  EXPECT_EQ(schema.returns[1].name, "b");
}

TEST(SchemaTest, reads_defaults_by_type) {
  OpSchema schema =
      parse_schema(
          "aten::y(float eps=1e-05, float one=1, str mode=\"none\", bool b=True, Layout l=strided, int r=Mean, "
          "MemoryFormat f=contiguous_format, int[] d=[0, 1], Scalar s=-1.5, ScalarType t=long) -> ()")
          .value();
  EXPECT_EQ(schema.arguments[0].default_value, Argument(1e-05));
  EXPECT_EQ(schema.arguments[1].default_value, Argument(1.0));
  EXPECT_EQ(schema.arguments[2].default_value, Argument(std::string("none")));
  EXPECT_EQ(schema.arguments[3].default_value, Argument(true));
  EXPECT_EQ(schema.arguments[4].default_value, Argument(TensorLayout::kStrided));
  EXPECT_EQ(schema.arguments[5].default_value, Argument(int64_t{1}));
  EXPECT_EQ(schema.arguments[6].default_value, Argument(MemoryFormat::kContiguous));
  EXPECT_EQ(schema.arguments[7].default_value, Argument(IntList{int64_t{0}, int64_t{1}}));
  EXPECT_EQ(schema.arguments[8].default_value, Argument(-1.5));
  EXPECT_EQ(schema.arguments[9].default_value, Argument(DType::kI64));
  EXPECT_TRUE(schema.returns.empty());
}

TEST(SchemaTest, rejects_what_is_no_schema) {
  for (std::string_view text :
       {"", "aten::f", "aten::f(", "aten::f()", "aten::f(Tensor) -> Tensor", "aten::f(Tensor a, Tensor a) -> ()",
        "aten::f(int x=a) -> ()", "aten::f(int[99999] x) -> ()", "aten::f() -> Tensor Tensor b", "a b(Tensor c) -> ()",
        "aten::f(str s=\"x) -> ()", "aten::f(Tensor( x) -> ()", "aten::f(int x=99999999999999999999) -> ()"}) {
    EXPECT_FALSE(parse_schema(text)) << text;
  }
}

TEST(SchemaTableTest, knows_the_builtins_and_refuses_a_second_text) {
  SchemaTable table;
  EXPECT_TRUE(table.find("_operator.floordiv"));
  EXPECT_TRUE(table.find("higher_order.cond"));
  OpId id = table.add("aten::relu(Tensor self) -> Tensor").value();
  EXPECT_EQ(table.add("aten::relu(Tensor self) -> Tensor").value(), id);
  EXPECT_FALSE(table.add("aten::relu(Tensor me) -> Tensor"));
  EXPECT_EQ(table[id].name, "aten.relu.default");
  EXPECT_EQ(table.find("aten.gelu.default"), std::nullopt);
}

}  // namespace
}  // namespace argosy
