#include "base/counts.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

TEST(Counts, digits_are_grouped_by_three) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(90000), "90,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(count_of(1, "node"), "1 node");
  EXPECT_EQ(count_of(2000, "node"), "2,000 nodes");
}

}  // namespace
}  // namespace argosy
