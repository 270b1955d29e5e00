#include "driver/model_folder.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"

namespace argosy {
namespace {

TEST(ModelFolder, takes_a_folder_with_a_configuration) {
  TestFolder folder;
  folder.write("m/config.json", "{}");
  EXPECT_EQ(model_folder(folder / "m", "").value_or(""), folder / "m");
}

TEST(ModelFolder, follows_the_main_branch_of_the_hub_s_cache) {
  TestFolder folder;
  folder.write("models--o--n/snapshots/one/config.json", "{}");
  folder.write("models--o--n/snapshots/two/config.json", "{}");
  folder.write("models--o--n/refs/main", "two\n");
  EXPECT_EQ(model_folder(folder / "models--o--n", "").value_or(""), folder / "models--o--n" / "snapshots" / "two");
  EXPECT_EQ(model_folder("o/n", folder.path()).value_or(""), folder / "models--o--n" / "snapshots" / "two");
  EXPECT_EQ(model_folder(folder / "models--o--n/snapshots/one", "").value_or(""),
            folder / "models--o--n" / "snapshots" / "one");
}

TEST(ModelFolder, the_only_snapshot_needs_no_branch) {
  TestFolder folder;
  folder.write("models--o--n/snapshots/one/config.json", "{}");
  EXPECT_EQ(model_folder(folder / "models--o--n", "").value_or(""), folder / "models--o--n" / "snapshots" / "one");
}

TEST(ModelFolder, rejects_what_is_no_model) {
  TestFolder folder;
  folder.write("m/readme", "");
  folder.write("config.json", "{}");
  folder.write("models--o--n/snapshots/one/config.json", "{}");
  folder.write("models--o--n/snapshots/two/config.json", "{}");
  folder.write("models--o--n/refs/main", "../..");
  expect_error(model_folder(folder / "m", ""), ErrorCode::kNotFound, "no config.json");
  expect_error(model_folder(folder / "nothing", ""), ErrorCode::kNotFound, "there is no folder");
  expect_error(model_folder("o/other", folder.path()), ErrorCode::kNotFound, "there is no folder \"o/other\"");
  expect_error(model_folder(folder / "models--o--n", ""), ErrorCode::kNotFound, "has 2 snapshots");
}

}  // namespace
}  // namespace argosy
