#include "ir/op_table.h"

#include <gtest/gtest.h>

#include <array>

namespace argosy {
namespace {

struct Row {
  std::string op;
  int number;
};

const Row kFirst[] = {{"aten.a.default", 1}, {"aten.b.default", 2}};
const Row kSecond[] = {{"aten.c.default", 3}};
const Row kAgain[] = {{"aten.a.default", 4}};

using Table = OpTable<Row>;

TEST(OpTableTest, finds_rows_of_all_families_and_those_added_at_run_time) {
  std::array<std::span<const Row>, 2> families = {kFirst, kSecond};
  Table table(families, Table::Duplicates::kRefuse);
  EXPECT_EQ(table.find("aten.c.default").front()->number, 3);
  EXPECT_TRUE(table.find("my.op.default").empty());
  ASSERT_TRUE(table.add({"my.op.default", 9}));
  EXPECT_EQ(table.find("my.op.default").front()->number, 9);
  EXPECT_FALSE(table.add({"aten.a.default", 5}));
  EXPECT_EQ(table.find("aten.a.default").size(), 1u);
}

TEST(OpTableTest, rejects_duplicates_in_families) {
  std::array<std::span<const Row>, 2> families = {kFirst, kAgain};
  EXPECT_THROW(Table(families, Table::Duplicates::kRefuse), InternalError);
  EXPECT_EQ(Table(families, Table::Duplicates::kAllow).find("aten.a.default").size(), 2u);
}

}  // namespace
}  // namespace argosy
