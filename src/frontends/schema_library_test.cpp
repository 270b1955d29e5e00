#include "frontends/schema_library.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace argosy {
namespace {

Result<SchemaLibrary> load(std::string_view text) {
  std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) /
      (std::string("schemas_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt");
  std::ofstream(path) << text;
  Result<SchemaLibrary> library = SchemaLibrary::load(path);
  std::filesystem::remove(path);
  return library;
}

TEST(SchemaLibrary, reads_one_schema_a_line) {
  Result<SchemaLibrary> library = load(
      "# torch 2.13\n\naten::relu(Tensor self) -> Tensor\r\naten::add.Tensor(Tensor self, Tensor other, *, Scalar "
      "alpha=1) -> Tensor\n");
  ASSERT_TRUE(library.has_value()) << to_text(library.error());
  EXPECT_EQ(library->size(), 2u);
  EXPECT_TRUE(library->contains("aten.relu.default"));
  SchemaTable table;
  size_t before = table.size();
  Result<std::optional<OpId>> op = library->resolve("aten.add.Tensor", table);
  ASSERT_TRUE(op.has_value() && op->has_value());
  EXPECT_EQ(table[**op].arguments.size(), 3u);
  EXPECT_EQ(table.size(), before + 1);
  Result<std::optional<OpId>> unknown = library->resolve("aten.no.such", table);
  ASSERT_TRUE(unknown.has_value());
  EXPECT_FALSE(unknown->has_value());
}

TEST(SchemaLibrary, rejects_lines_that_are_no_schema) {
  Result<SchemaLibrary> library = load("aten::relu(Tensor self) -> Tensor\nnonsense\n");
  ASSERT_FALSE(library.has_value());
  EXPECT_NE(to_text(library.error()).find("line 2"), std::string::npos);
}

TEST(SchemaLibrary, rejects_two_schemas_of_one_op) {
  Result<SchemaLibrary> library = load("aten::f(Tensor self) -> Tensor\naten::f(int x) -> Tensor\n");
  ASSERT_FALSE(library.has_value());
  EXPECT_NE(library.error().message.find("two schemas"), std::string::npos);
}

TEST(SchemaLibrary, rejects_a_broken_schema_when_it_is_needed) {
  Result<SchemaLibrary> library = load("aten::f(Tensor\n");
  ASSERT_TRUE(library.has_value());
  SchemaTable table;
  EXPECT_FALSE(library->resolve("aten.f.default", table).has_value());
}

}  // namespace
}  // namespace argosy
