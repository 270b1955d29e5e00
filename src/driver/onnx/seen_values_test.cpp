#include "driver/onnx/seen_values.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"
#include "io/write_file.h"

namespace argosy {
namespace {

std::string refused(const TestFolder& folder, std::string_view text) {
  auto path = folder.path() / "seen.json";
  EXPECT_TRUE(write_file(path, text, Overwrite::kReplace));
  auto seen = read_seen_values(path);
  EXPECT_FALSE(seen);
  return seen ? "" : seen.error().message;
}

TEST(SeenValues, are_read_by_graph_and_name) {
  TestFolder folder;
  auto path = folder.path() / "seen.json";
  ASSERT_TRUE(write_file(path, R"({"format": "argosy-seen-values", "version": 1, "graphs": {"decode": {"a": 2.5}}})",
                         Overwrite::kReplace));
  auto seen = read_seen_values(path);
  ASSERT_TRUE(seen);
  EXPECT_EQ(**seen, (onnx::SeenValues{{"decode", {{"a", 2.5}}}}));
}

TEST(SeenValues, rejects_other_files_and_what_is_no_magnitude) {
  TestFolder folder;
  EXPECT_NE(refused(folder, "{}").find("does not tell of values"), std::string::npos);
  EXPECT_NE(refused(folder, R"({"format": "argosy-seen-values", "version": 2})").find("does not tell of values"),
            std::string::npos);
  for (const char* value : {"-1", "\"large\"", "null"}) {
    std::string text =
        std::string(R"({"format": "argosy-seen-values", "version": 1, "graphs": {"g": {"a": )") + value + "}}}";
    EXPECT_NE(refused(folder, text).find("has no magnitude for \"a\""), std::string::npos) << value;
  }
}

}  // namespace
}  // namespace argosy
