#include "io/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace argosy {
namespace {

JsonDocument parsed(std::string_view text) {
  auto document = JsonDocument::parse(text, "test.json");
  EXPECT_TRUE(document.has_value()) << (document ? "" : document.error().message);
  return *std::move(document);
}

void expect_refused(std::string_view text, std::string_view part) {
  auto document = JsonDocument::parse(text, "test.json");
  ASSERT_FALSE(document.has_value()) << text.substr(0, 80);
  EXPECT_EQ(document.error().code, ErrorCode::kCorruptFile);
  EXPECT_NE(document.error().message.find(part), std::string::npos) << document.error().message;
  EXPECT_NE(document.error().message.find("test.json"), std::string::npos) << document.error().message;
}

TEST(Json, reads_every_kind) {
  JsonDocument document = parsed(R"({"n":null,"t":true,"f":false,"i":-5,"u":18446744073709551615,"d":1.5,
                                     "s":"a\u00e9\n","a":[1,[2],{}],"o":{"x":1}})");
  JsonView root = document.root();
  EXPECT_EQ(root.kind(), JsonKind::kObject);
  EXPECT_EQ(root.size(), 9u);
  EXPECT_TRUE(root.find("n").is_null());
  EXPECT_EQ(root.find("t").as_bool(), true);
  EXPECT_EQ(root.find("f").as_bool(), false);
  EXPECT_EQ(root.find("i").as_integer(), -5);
  EXPECT_EQ(root.find("i").as_unsigned(), std::nullopt);
  EXPECT_EQ(root.find("i").as_double(), -5.0);
  EXPECT_EQ(root.find("u").kind(), JsonKind::kUnsigned);
  EXPECT_EQ(root.find("u").as_integer(), std::nullopt);
  EXPECT_EQ(root.find("u").as_unsigned(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(root.find("d").as_double(), 1.5);
  EXPECT_EQ(root.find("d").as_integer(), std::nullopt);
  EXPECT_EQ(root.find("s").as_string(), "a\xc3\xa9\n");
  EXPECT_EQ(root.find("a").size(), 3u);
  EXPECT_EQ(root.find("o").only_member().first, "x");
  EXPECT_EQ(root.find("o").only_member().second.as_integer(), 1);
  EXPECT_EQ(root.only_member().first, "");
  EXPECT_FALSE(root.only_member().second.is_valid());
}

TEST(Json, absent_and_other_kinds_read_as_nothing) {
  JsonDocument document = parsed(R"({"a":[1]})");
  JsonView absent = document.root().find("b");
  EXPECT_FALSE(absent.is_valid());
  EXPECT_FALSE(absent.is_object() || absent.is_array() || absent.is_null());
  EXPECT_EQ(absent.as_string(), std::nullopt);
  EXPECT_EQ(absent.as_bool(), std::nullopt);
  EXPECT_EQ(absent.size(), 0u);
  EXPECT_FALSE(absent.find("x").is_valid());
  EXPECT_FALSE(document.root().find("a").find("x").is_valid());
  for (JsonView item : absent.items()) FAIL() << item.size();
  for (auto member : document.root().find("a").members()) FAIL() << member.first;
}

TEST(Json, iterates_in_document_order) {
  JsonDocument document = parsed(R"({"z":1,"a":{"k":[1,2]},"m":[[],"x",{"y":2.5},3]})");
  std::string keys;
  for (auto [key, value] : document.root().members()) keys += key;
  EXPECT_EQ(keys, "zam");
  std::vector<JsonKind> kinds;
  for (JsonView item : document.root().find("m").items()) kinds.push_back(item.kind());
  EXPECT_EQ(kinds, (std::vector{JsonKind::kArray, JsonKind::kString, JsonKind::kObject, JsonKind::kInteger}));
}

TEST(Json, finds_the_first_of_duplicate_keys) {
  JsonDocument document = parsed(R"({"a":1,"a":2})");
  EXPECT_EQ(document.root().find("a").as_integer(), 1);
  EXPECT_EQ(document.root().size(), 2u);
}

TEST(Json, document_outlives_its_text_and_moves) {
  std::string text = R"(["some longer text that is not inline"])";
  auto first = JsonDocument::parse(text, "x");
  text.assign(text.size(), '!');
  JsonView view = first->root();
  JsonDocument second = *std::move(first);
  EXPECT_EQ((*view.items().begin()).as_string(), "some longer text that is not inline");
  EXPECT_EQ(JsonDocument::parse_owned(std::string("[1,2]"), "x")->root().size(), 2u);
}

TEST(Json, counts_more_members_than_the_tape_records) {
  constexpr size_t kCount = (size_t{1} << 24) + 5;
  std::string text(2 * kCount + 1, ',');
  for (size_t i = 1; i < text.size(); i += 2) text[i] = '1';
  text.front() = '[';
  text.back() = ']';
  EXPECT_EQ(JsonDocument::parse_owned(std::move(text), "x")->root().size(), kCount);
}

TEST(Json, nesting_up_to_the_limit_is_read) {
  std::string text = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_TRUE(JsonDocument::parse(text, "x").has_value());
}

TEST(Json, rejects_deep_nesting) {
  expect_refused(std::string(100000, '[') + std::string(100000, ']'), "nested more than 1024");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  expect_refused(objects + "1" + std::string(100000, '}'), "nested more than 1024");
}

TEST(Json, rejects_malformed_text) {
  expect_refused("", "empty");
  expect_refused("   ", "empty");
  expect_refused("{\"a\":1,}", "missing or misplaced");
  expect_refused("[1 2]", "missing or misplaced");
  expect_refused("[1]]", "missing or misplaced");
  expect_refused("{1:2}", "missing or misplaced");
  expect_refused("[\"abc", "not closed");
  expect_refused("[\"a\nb\"]", "control character");
  expect_refused("[\"\\x\"]", "escape");
  expect_refused("[01]", "number");
  expect_refused("[tru]", "neither true");
  expect_refused("[\"\xff\"]", "UTF-8");
}

TEST(Json, errors_say_where) {
  expect_refused("{\"a\":1,}", "(at byte 7)");
  expect_refused("[1 2]", "(at byte 3)");
  expect_refused("[1]]", "(at byte 3)");
  expect_refused("[", "(at byte 1)");
  expect_refused("{1:2}", "(at byte 1)");
  expect_refused("{\"a\" 2}", "(at byte 5)");
  expect_refused("[\"abc", "(at byte 5)");
  expect_refused("[\"a\nb\"]", "(at byte 3)");
  expect_refused("[\"\\x\"]", "(at byte 3)");
  expect_refused("[\"\\u12g4\"]", "(at byte 6)");
  expect_refused("[\"\\u0041\"x]", "(at byte 9)");
  expect_refused("[01]", "(at byte 2)");
  expect_refused("[1.]", "(at byte 3)");
  expect_refused("[tru]", "(at byte 1)");
  expect_refused("[\"\xc3\xa9\xc3\xa9\xff\"]", "(at byte 6)");
  expect_refused(std::string(2000, '[') + std::string(2000, ']'), "(at byte 1024)");
}

TEST(Json, reads_integers_beyond_64_bits_as_doubles) {
  JsonDocument document = parsed(R"({"a":1000000000000000019884624838656,"b":"1000000000000000019884624838656",
      "c":-9223372036854775808,"d":[-92233720368547758080,1]})");
  EXPECT_EQ(document.root().find("a").as_double(), 1e30);
  EXPECT_EQ(document.root().find("b").as_string(), "1000000000000000019884624838656");
  EXPECT_EQ(document.root().find("c").as_integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ((*document.root().find("d").items().begin()).as_double(), -92233720368547758080.0);
}

TEST(Json, rejects_more_than_its_limits) {
  auto document = JsonDocument::parse("[1,2,3]", "x", {.max_bytes = 6});
  ASSERT_FALSE(document.has_value());
  EXPECT_NE(document.error().message.find("7 B"), std::string::npos) << document.error().message;
  document = JsonDocument::parse("[1,2,3]", "x", {.max_values = 2});
  ASSERT_FALSE(document.has_value());
  EXPECT_NE(document.error().message.find("3 values"), std::string::npos) << document.error().message;
}

TEST(JsonWriter, writes_compact_text) {
  JsonWriter writer;
  writer.begin_object().key("a").value(1).key("b").begin_array().value("x\"\\\n\x01").value(true).null().value(0.1);
  writer.value(uint64_t{18446744073709551615u}).begin_object().end_object().begin_array().end_array().end_array();
  writer.key("c").value(2.0).end_object();
  EXPECT_EQ(writer.text(), R"({"a":1,"b":["x\"\\\n\u0001",true,null,0.1,18446744073709551615,{},[]],"c":2.0})");
}

TEST(JsonWriter, writes_indented_text) {
  JsonWriter writer(JsonWriter::Layout::kIndented);
  writer.begin_object().key("a").begin_array().value(1).value(2).end_array().key("b").begin_object().end_object();
  writer.end_object();
  EXPECT_EQ(writer.text(), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

TEST(JsonWriter, writes_what_is_not_finite_as_torch_does) {
  JsonWriter writer;
  double inf = std::numeric_limits<double>::infinity();
  writer.begin_array().value(inf).value(-inf).value(std::nan("")).end_array();
  EXPECT_EQ(writer.text(), R"(["Infinity","-Infinity","NaN"])");
}

TEST(JsonWriter, copies_parsed_values) {
  std::string text = R"({"a":[1,-2,1.5,"x\u0001",null,true,18446744073709551615],"b":{"c":{}},"d":1e+300})";
  JsonWriter writer;
  writer.value(parsed(text).root());
  EXPECT_EQ(writer.text(), text);
}

}  // namespace
}  // namespace argosy
