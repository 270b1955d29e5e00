#include "table.h"

#include <gtest/gtest.h>

#include "wrap.h"

namespace argosy::cli {
namespace {

TEST(TableTest, aligns_columns_and_leaves_no_spaces_at_the_end) {
  Table table("rll");
  table.add({"1", "a", "x"});
  table.add({"1,000", "bcd"});
  EXPECT_EQ(table.text(), "      1  a    x\n  1,000  bcd\n");
}

TEST(WrapTest, lines_are_broken_between_words_and_go_on_indented) {
  EXPECT_EQ(wrapped("error: one two three four\n  hint: five six seven\n", 16),
            "error: one two\n  three four\n  hint: five six\n    seven\n");
  EXPECT_EQ(wrapped("sixteen columns.\nsixteen columns. no", 16), "sixteen columns.\nsixteen columns.\n  no");
}

TEST(WrapTest, words_and_commands_stay_whole) {
  EXPECT_EQ(wrapped("see /very/long/path/of/a/file b", 10), "see\n  /very/long/path/of/a/file\n  b");
  EXPECT_EQ(wrapped("Next: argosy run out --prompt x", 10), "Next: argosy run out --prompt x");
}

TEST(WrapTest, counts_characters_and_no_colours) {
  EXPECT_EQ(wrapped("äöü… äöü", 8), "äöü… äöü");
  EXPECT_EQ(wrapped("\x1b[1mabc\x1b[0m def gh", 7), "\x1b[1mabc\x1b[0m def\n  gh");
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
