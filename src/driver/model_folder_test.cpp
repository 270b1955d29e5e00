#include "driver/model_folder.h"

#include <gtest/gtest.h>

#include "io/test_folder.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

ModelRequest request(const fs::path& name, const fs::path& hub_cache = "", std::string revision = "") {
  ModelRequest result;
  result.name = name;
  result.hub_cache = hub_cache;
  result.revision = std::move(revision);
  return result;
}

ModelRequest with_weights(ModelRequest result) {
  result.weights = true;
  return result;
}

fs::path folder_of(const ModelRequest& request) { return find_model(request).value_or(FoundModel()).folder; }

std::string missing(const ModelRequest& request) {
  FoundModel found = find_model(request).value_or(FoundModel());
  EXPECT_EQ(found.folder.empty(), !found.missing.empty());
  return found.missing;
}

TEST(ModelFolder, takes_a_folder_with_a_configuration) {
  TestFolder folder;
  folder.write("m/config.json", "{}");
  FoundModel found = find_model(request(folder / "m")).value_or(FoundModel());
  EXPECT_EQ(found.folder, folder / "m");
  EXPECT_EQ(found.commit, "");
  // What it lacks is found when it is opened.
  EXPECT_EQ(folder_of(with_weights(request(folder / "m"))), folder / "m");
}

TEST(ModelFolder, follows_branches_tags_and_commits_of_the_hub_s_cache) {
  TestFolder folder;
  fs::path repository = folder / "models--o--n";
  folder.write("models--o--n/snapshots/one/config.json", "{}");
  folder.write("models--o--n/snapshots/two/config.json", "{}");
  folder.write("models--o--n/refs/main", "two\n");
  folder.write("models--o--n/refs/refs/pr/1", "one");
  EXPECT_EQ(folder_of(request(repository)), repository / "snapshots" / "two");
  EXPECT_EQ(folder_of(request("o/n", folder.path())), repository / "snapshots" / "two");
  EXPECT_EQ(find_model(request("o/n", folder.path())).value_or(FoundModel()).commit, "two");
  for (const fs::path& name : {repository, fs::path("o/n")}) {
    EXPECT_EQ(folder_of(request(name, folder.path(), "main")), repository / "snapshots" / "two");
    EXPECT_EQ(folder_of(request(name, folder.path(), "one")), repository / "snapshots" / "one");
    EXPECT_EQ(folder_of(request(name, folder.path(), "refs/pr/1")), repository / "snapshots" / "one");
  }
  EXPECT_EQ(folder_of(request(repository / "snapshots/one")), repository / "snapshots" / "one");
}

TEST(ModelFolder, the_only_snapshot_of_a_repository_s_path_needs_no_branch) {
  TestFolder folder;
  folder.write("models--o--n/snapshots/one/config.json", "{}");
  EXPECT_EQ(folder_of(request(folder / "models--o--n")), folder / "models--o--n" / "snapshots" / "one");
  EXPECT_EQ(missing(request("o/n", folder.path())), "revision \"main\" of the model");
}

TEST(ModelFolder, a_name_is_found_only_if_everything_is_there) {
  TestFolder folder;
  EXPECT_EQ(missing(request("o/n", folder.path())), "the model");
  EXPECT_EQ(missing(request("o/n")), "the model");
  folder.write("models--o--n/refs/main", "one");
  folder.write("models--o--n/snapshots/one/readme", "");
  EXPECT_EQ(missing(request("o/n", folder.path())), "the model's config.json");
  folder.write("models--o--n/snapshots/one/config.json", R"({"auto_map": {"AutoModel": "modeling_n.N"}})");
  EXPECT_EQ(missing(request("o/n", folder.path())), "");
  EXPECT_EQ(missing(request("o/n", folder.path(), "other")), "revision \"other\" of the model");
  ModelRequest weights = with_weights(request("o/n", folder.path()));
  EXPECT_EQ(missing(weights), "its weights");
  folder.write("models--o--n/snapshots/one/optimizer.bin", "");
  EXPECT_EQ(missing(weights), "its weights");
  folder.write("models--o--n/snapshots/one/pytorch_model.bin", "");
  EXPECT_EQ(missing(weights), "");
  folder.write("models--o--n/snapshots/one/model.safetensors.index.json",
               R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors", "c": "3.safetensors"}})");
  folder.write("models--o--n/snapshots/one/2.safetensors", "");
  EXPECT_EQ(missing(weights), "2 of its 3 shards");
  folder.write("models--o--n/snapshots/one/1.safetensors", "");
  // Links of the Hub's cache may lead nowhere.
  fs::create_symlink("../../blobs/gone", folder / "models--o--n/snapshots/one/3.safetensors");
  EXPECT_EQ(missing(weights), "1 of its 3 shards");
  folder.write("models--o--n/blobs/gone", "");
  EXPECT_EQ(missing(weights), "");
  ModelRequest code = request("o/n", folder.path());
  code.code = true;
  EXPECT_EQ(missing(code), "modeling_n.py");
  folder.write("models--o--n/snapshots/one/modeling_n.py", "");
  EXPECT_EQ(missing(code), "");
}

TEST(ModelFolder, knows_the_hub_s_names) {
  for (const char* name : {"o/n", "Qwen/Qwen3-0.6B", "a_b/c.d"}) EXPECT_TRUE(is_hub_name(name)) << name;
  for (const char* name : {"n", "o/n/m", "/n", "o/", "../n", "o/..", "-o/n", "o/-n", "o/a--b", "o/n m", "o/.hidden",
                           "o/ü", "~/n", "o\\n/m", "o/n\n"}) {
    EXPECT_FALSE(is_hub_name(name)) << name;
  }
  EXPECT_FALSE(is_hub_name("o/" + std::string(97, 'n')));
}

TEST(ModelFolder, rejects_what_is_no_model) {
  TestFolder folder;
  folder.write("m/readme", "");
  folder.write("config.json", "{}");
  folder.write("models--o--n/snapshots/one/config.json", "{}");
  folder.write("models--o--n/snapshots/two/config.json", "{}");
  folder.write("models--o--n/refs/main", "../..");
  expect_error(find_model(request(folder / "m")), ErrorCode::kNotFound, "no config.json");
  expect_error(find_model(request(folder / "nothing")), ErrorCode::kNotFound, "there is no folder");
  expect_error(find_model(request(folder / "models--o--n")), ErrorCode::kNotFound, "has 2 snapshots");
  expect_error(find_model(request(folder / "models--o--n", "", "v1")), ErrorCode::kNotFound, "no snapshot of \"v1\"");
  expect_error(find_model(request(folder.path(), "", "v1")), ErrorCode::kInvalidInput, "which has no revision");
}

TEST(ModelFolder, rejects_references_that_lead_elsewhere) {
  TestFolder folder;
  folder.write("hub/models--o--n/snapshots/one/config.json", "{}");
  folder.write("hub/models--o--n/config.json", "{}");
  folder.write("hub/secret", "one");
  for (const char* commit : {"../..", "..", "one/../one", "", "/etc", "a/b"}) {
    folder.write("hub/models--o--n/refs/main", commit);
    EXPECT_EQ(missing(request("o/n", folder / "hub")), "revision \"main\" of the model") << commit;
  }
  for (const char* revision : {"../../secret", "..", "/etc/hostname", "one/.."}) {
    EXPECT_NE(missing(request("o/n", folder / "hub", revision)), "") << revision;
  }
}

TEST(ModelFolder, rejects_a_configuration_that_is_a_link_out_of_the_folder) {
  TestFolder folder;
  folder.write("elsewhere/config.json", "{}");
  fs::create_directory(folder / "m");
  fs::create_symlink("../elsewhere/config.json", folder / "m/config.json");
  expect_error(find_model(request(folder / "m")), ErrorCode::kInvalidInput, "leads out of its folder");
  // The folder itself may be a link, and the Hub's cache is made of links.
  fs::create_directory_symlink(folder / "elsewhere", folder / "link");
  EXPECT_EQ(folder_of(request(folder / "link")), folder / "link");
  folder.write("models--o--n/blobs/abc", "{}");
  folder.write("models--o--n/refs/main", "one");
  fs::create_directories(folder / "models--o--n/snapshots/one");
  fs::create_symlink("../../blobs/abc", folder / "models--o--n/snapshots/one/config.json");
  EXPECT_EQ(folder_of(request("o/n", folder.path())), folder / "models--o--n/snapshots/one");
}

}  // namespace
}  // namespace argosy
