#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/checked_math.h"

namespace argosy {
namespace {

TEST(TextTest, bytes_have_three_digits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(999'600), "1.00 MB");
  EXPECT_EQ(format_bytes(14'200'000'000), "14.2 GB");
}

TEST(TextTest, quoted_escapes_and_cuts) {
  EXPECT_EQ(quoted("a\"b\n"), "\"a\\\"b\\x0a\"");
  EXPECT_EQ(quoted(std::string(200, 'x'), 3), "\"xxx… (200 bytes)\"");
}

TEST(TextTest, quoted_is_always_utf8) {
  EXPECT_EQ(quoted("é€😀"), "\"é€😀\"");
  EXPECT_EQ(quoted("\xff\xc3"), "\"\\xff\\xc3\"");
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"");
  EXPECT_EQ(quoted("\xc0\x80"), "\"\\xc0\\x80\"");
  EXPECT_EQ(quoted("a€b", 2), "\"a… (5 bytes)\"");
}

TEST(TextTest, recognises_utf8) {
  for (const char* text : {"", "a", "é€😀", "\x7f", "\xf4\x8f\xbf\xbf"}) EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text : {"\x80", "\xc3", "\xe2\x82", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xf8\x88\x80\x80\x80", "a\xff"}) {
    EXPECT_FALSE(is_utf8(text)) << quoted(text);
  }
}

TEST(TextTest, doubles_read_back) {
  EXPECT_EQ(format_double(1), "1.0");
  EXPECT_EQ(format_double(0.1), "0.1");
  EXPECT_EQ(format_double(1e300), "1e+300");
  EXPECT_EQ(format_double(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(TextTest, names_to_register_by_are_small) {
  for (std::string_view name : {"a", "_", "clipped4", "sample_server"}) EXPECT_TRUE(is_registered_name(name)) << name;
  for (std::string_view name : {"", "4bits", "Int4", "a-b", "a.b", "a b", "\u00e9"})
    EXPECT_FALSE(is_registered_name(name));
  EXPECT_TRUE(is_registered_name(std::string(64, 'a')));
  EXPECT_FALSE(is_registered_name(std::string(65, 'a')));
}

TEST(CheckedMathTest, element_count_refuses_overflow_in_any_order) {
  EXPECT_EQ(element_count(std::vector<int64_t>{2, 3, 4}), 24);
  EXPECT_EQ(element_count(std::vector<int64_t>{}), 1);
  EXPECT_EQ(element_count(std::vector<int64_t>{5, 0}), 0);
  EXPECT_EQ(element_count(std::vector<int64_t>{-1}), std::nullopt);
  EXPECT_EQ(element_count(std::vector<int64_t>{0, INT64_MAX, 2}), std::nullopt);
}

}  // namespace
}  // namespace argosy
