#include "driver/executorch/seen_ranges.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"
#include "io/write_file.h"

namespace argosy {
namespace {

Result<executorch::ActivationRanges> ranges_of(const TestFolder& folder, const std::string& layers) {
  auto path = folder.path() / "ranges.json";
  std::string text = R"({"format": "argosy-seen-ranges", "version": 1, "layers": )" + layers + "}";
  EXPECT_TRUE(write_file(path, text, Overwrite::kReplace));
  return read_seen_ranges(path);
}

TEST(SeenRanges, are_read_by_the_names_of_weights) {
  TestFolder folder;
  auto seen = ranges_of(folder, R"({"fc.weight": {"input": [-1, 2.5], "output": [0, 3]}})");
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen->size(), 1U);
  const executorch::LayerRanges& layer = seen->at("fc.weight");
  EXPECT_EQ(layer.input_least, -1);
  EXPECT_EQ(layer.input_most, 2.5);
  EXPECT_EQ(layer.output_least, 0);
  EXPECT_EQ(layer.output_most, 3);
}

TEST(SeenRanges, rejects_files_of_something_else) {
  TestFolder folder;
  auto path = folder.path() / "other.json";
  for (const char* text : {"{}", R"({"format": "argosy-seen-ranges", "version": 2})"}) {
    ASSERT_TRUE(write_file(path, text, Overwrite::kReplace));
    auto seen = read_seen_ranges(path);
    ASSERT_FALSE(seen);
    EXPECT_NE(seen.error().message.find("does not tell of ranges"), std::string::npos);
  }
}

TEST(SeenRanges, rejects_what_is_no_range) {
  TestFolder folder;
  for (const char* layer :
       {R"("a": {"input": [1, 0], "output": [0, 1]})", R"("a": {"input": [0, 1]})", R"("a": {})",
        R"("a": {"input": [0, 1, 2], "output": [0, 1]})", R"("a": {"input": [0, "1"], "output": [0, 1]})",
        R"("a b": {"input": [0, 1], "output": [0, 1]})", R"("": {"input": [0, 1], "output": [0, 1]})"}) {
    auto seen = ranges_of(folder, std::string("{") + layer + "}");
    ASSERT_FALSE(seen) << layer;
    EXPECT_NE(seen.error().message.find("has no ranges for"), std::string::npos) << layer;
  }
  auto none = ranges_of(folder, "{}");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("has no layers"), std::string::npos);
}

}  // namespace
}  // namespace argosy
