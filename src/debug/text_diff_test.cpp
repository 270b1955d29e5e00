#include "debug/text_diff.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

TEST(UnifiedDiff, equal_texts_have_none) { EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", "x", "y"), ""); }

TEST(UnifiedDiff, shows_a_changed_line_with_context) {
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "want", "have"),
            "--- want\n+++ have\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, separates_distant_changes) {
  std::string before, after;
  for (int i = 1; i <= 30; ++i) {
    before += std::to_string(i) + "\n";
    after += (i == 3 || i == 25 ? "x" : std::to_string(i)) + "\n";
  }
  EXPECT_EQ(unified_diff(before, after, "a", "b"),
            "--- a\n+++ b\n@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n"
            "@@ -22,7 +22,7 @@\n 22\n 23\n 24\n-25\n+x\n 26\n 27\n 28\n");
}

TEST(UnifiedDiff, joins_near_changes) {
  EXPECT_EQ(unified_diff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n", "a", "b"),
            "--- a\n+++ b\n@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

TEST(UnifiedDiff, shows_insertion_into_nothing_and_removal_of_everything) {
  EXPECT_EQ(unified_diff("", "a\n", "x", "y"), "--- x\n+++ y\n@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(unified_diff("a\nb\n", "", "x", "y"), "--- x\n+++ y\n@@ -1,2 +0,0 @@\n-a\n-b\n");
}

TEST(UnifiedDiff, says_when_only_the_last_line_feed_differs) {
  EXPECT_EQ(unified_diff("a\n", "a", "x", "y"), "--- x\n+++ y\n\\ only the line feed at the end of the text differs\n");
}

}  // namespace
}  // namespace argosy
