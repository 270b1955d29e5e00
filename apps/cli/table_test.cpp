#include "table.h"

#include <gtest/gtest.h>

namespace argosy::cli {
namespace {

TEST(TableTest, aligns_columns_and_leaves_no_spaces_at_the_end) {
  Table table("rll");
  table.add({"1", "a", "x"});
  table.add({"1,000", "bcd"});
  EXPECT_EQ(table.text(), "      1  a    x\n  1,000  bcd\n");
}

TEST(TableTest, counts_characters_not_bytes) {
  Table table("ll", 0);
  table.add({"…", "x"});
  table.add({"ab", "y"});
  EXPECT_EQ(table.text(), "…   x\nab  y\n");
}

TEST(TableTest, names_cannot_command_the_terminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a\\x1b[2Jb\\x0a\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J \xC2\xB5 \xE2\x80\xA6"),
            "\\x9b2J \xC2\xB5 \xE2\x80\xA6");
  Table table("l", 0);
  table.add({"\x1b[31m"});
  EXPECT_EQ(table.text(), "\\x1b[31m\n");
}

}  // namespace
}  // namespace argosy::cli
