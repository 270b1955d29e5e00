#include <gtest/gtest.h>
#include <sys/resource.h>

#include <limits>

#include "io/checkpoint_index.h"
#include "io/checkpoint_testing.h"
#include "io/json.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

/// A safetensors file of u8 tensors, each with the given contents.
std::string shard(const std::vector<std::pair<std::string, std::string>>& tensors) {
  JsonWriter json;
  json.begin_object();
  std::string data;
  for (const auto& [name, bytes] : tensors) {
    json.key(name).begin_object().key("dtype").value("U8").key("shape").begin_array();
    json.value(uint64_t{bytes.size()}).end_array().key("data_offsets").begin_array();
    json.value(uint64_t{data.size()}).value(uint64_t{data.size() + bytes.size()}).end_array().end_object();
    data += bytes;
  }
  std::string header = json.end_object().take();
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string index(const std::vector<std::pair<std::string, std::string>>& rows) {
  JsonWriter json;
  json.begin_object().key("metadata").begin_object().key("total_size").value(1).end_object();
  json.key("weight_map").begin_object();
  for (const auto& [tensor, file] : rows) json.key(tensor).value(file);
  return json.end_object().end_object().take();
}

constexpr const char* kIndex = "model.safetensors.index.json";

/// Two shards with a, c and b, and their index.
void write_shards(const TestFolder& folder) {
  folder.write("s1.safetensors", shard({{"c", "CC"}, {"a", "A"}}));
  folder.write("s2.safetensors", shard({{"b", "BBB"}}));
  folder.write(kIndex, index({{"a", "s1.safetensors"}, {"b", "s2.safetensors"}, {"c", "s1.safetensors"}}));
}

void expect_refused(const fs::path& path, std::string_view part, ErrorCode code = ErrorCode::kCorruptFile) {
  expect_error(Checkpoint::open(path), code, part);
}

TEST(Checkpoint, opens_one_file) {
  TestFolder folder;
  folder.write("model.safetensors", shard({{"b", "xy"}, {"a", "z"}}));
  for (const fs::path& path : {folder.path(), folder / "model.safetensors"}) {
    auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    ASSERT_EQ(checkpoint->tensors().size(), 2u);
    EXPECT_EQ(checkpoint->tensors()[0].name, "a");
    EXPECT_EQ(checkpoint->total_bytes(), 3u);
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "a"), "z");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "b"), "xy");
  }
}

TEST(Checkpoint, takes_the_tensors_of_another_under_a_prefix) {
  TestFolder folder, adapter;
  write_shards(folder);
  adapter.write("adapter_model.safetensors", shard({{"a", "xyz"}, {"0", "q"}}));
  Checkpoint checkpoint = Checkpoint::open(folder.path()).value();
  Checkpoint other = Checkpoint::open(adapter.path()).value();
  ASSERT_TRUE(checkpoint.add(other, "adapter:"));
  ASSERT_EQ(checkpoint.tensors().size(), 5u);
  EXPECT_EQ(bytes_of_tensor(checkpoint, "a"), "A");
  EXPECT_EQ(bytes_of_tensor(checkpoint, "b"), "BBB");
  EXPECT_EQ(bytes_of_tensor(checkpoint, "adapter:a"), "xyz");
  EXPECT_EQ(bytes_of_tensor(checkpoint, "adapter:0"), "q");
  EXPECT_FALSE(checkpoint.add(other, "adapter:"));
  EXPECT_EQ(checkpoint.tensors().size(), 5u);
}

TEST(Checkpoint, opens_shards) {
  TestFolder folder;
  write_shards(folder);
  for (const fs::path& path : {folder.path(), folder / kIndex}) {
    auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    ASSERT_EQ(checkpoint->tensors().size(), 3u);
    EXPECT_EQ(checkpoint->files().size(), 2u);
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "a"), "A");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "b"), "BBB");
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "c"), "CC");
  }
}

TEST(Checkpoint, opens_shards_in_a_subfolder) {
  TestFolder folder;
  folder.write("sub/s.safetensors", shard({{"a", "A"}}));
  folder.write(kIndex, index({{"a", "sub/s.safetensors"}}));
  EXPECT_TRUE(Checkpoint::open(folder.path()).has_value());
}

TEST(Checkpoint, needs_few_descriptors) {
  TestFolder folder;
  std::vector<std::pair<std::string, std::string>> rows;
  for (int i = 0; i < 100; ++i) {
    std::string name = "t" + std::to_string(i), file = "s" + std::to_string(i) + ".safetensors";
    folder.write(file, shard({{name, name}}));
    rows.emplace_back(name, file);
  }
  folder.write(kIndex, index(rows));
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{32, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  auto checkpoint = Checkpoint::open(folder.path());
  std::vector<TensorSourcePtr> sources;
  if (checkpoint) {
    for (const auto& row : rows) sources.push_back(*checkpoint->tensor(row.first));
    EXPECT_EQ(bytes_of_tensor(*checkpoint, "t77"), "t77");
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
}

TEST(Checkpoint, names_the_nearest_tensors) {
  TestFolder folder;
  folder.write("model.safetensors",
               shard({{"model.layers.0.q_proj.weight", "x"}, {"model.embed.weight", "x"}, {"z", ""}}));
  auto tensor = Checkpoint::open(folder.path())->tensor("layers.0.q_proj.weight");
  expect_error(tensor, ErrorCode::kNotFound, "layers.0.q_proj.weight");
  EXPECT_NE(tensor.error().hint.find("names are \"model.layers.0.q_proj.weight\""), std::string::npos)
      << tensor.error().hint;
}

TEST(Checkpoint, follows_links_of_the_hub_cache) {
  TestFolder folder;
  fs::path hub = folder / "hub/models--org--name";
  fs::create_directories(hub / "snapshots/abc");
  folder.write("hub/models--org--name/blobs/1", shard({{"a", "A"}}));
  folder.write("hub/models--org--name/blobs/2", index({{"a", "s1.safetensors"}}));
  fs::create_symlink("../../blobs/1", hub / "snapshots/abc/s1.safetensors");
  fs::create_symlink(fs::path("../../blobs/2"), hub / "snapshots/abc" / kIndex);
  auto checkpoint = Checkpoint::open(hub / "snapshots/abc");
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(bytes_of_tensor(*checkpoint, "a"), "A");
  // The user may reach it by links of their own.
  fs::create_directory_symlink(hub / "snapshots/abc", folder / "mine");
  EXPECT_TRUE(Checkpoint::open(folder / "mine").has_value());
  EXPECT_TRUE(Checkpoint::open(folder / "mine" / kIndex).has_value());
  EXPECT_TRUE(Checkpoint::open(folder / "mine/s1.safetensors").has_value());
}

TEST(Checkpoint, rejects_links_that_leave_the_folder) {
  TestFolder folder;
  folder.write("elsewhere.safetensors", shard({{"a", "A"}}));
  fs::create_directories(folder / "m");
  fs::create_symlink("../elsewhere.safetensors", folder / "m/model.safetensors");
  expect_refused(folder / "m", "leads out of its folder", ErrorCode::kInvalidInput);
  // Named by the user, it is read.
  EXPECT_TRUE(Checkpoint::open(folder / "m/model.safetensors").has_value());
}

TEST(Checkpoint, rejects_links_out_of_the_hub_cache) {
  TestFolder folder;
  folder.write("hub/models--a--b/blobs/1", shard({{"a", "A"}}));
  fs::path snapshot = folder / "hub/models--x--y/snapshots/abc";
  fs::create_directories(snapshot);
  fs::create_symlink("../../../models--a--b/blobs/1", snapshot / "model.safetensors");
  expect_refused(snapshot, "leads out of its folder", ErrorCode::kInvalidInput);
}

TEST(Checkpoint, rejects_shards_behind_links) {
  TestFolder folder;
  folder.write("out/s.safetensors", shard({{"a", "A"}}));
  folder.write("m/" + std::string(kIndex), index({{"a", "sub/s.safetensors"}}));
  fs::create_directory_symlink("../out", folder / "m/sub");
  expect_refused(folder / "m", "leads out of its folder", ErrorCode::kInvalidInput);
}

TEST(Checkpoint, rejects_link_loops) {
  TestFolder folder;
  fs::create_symlink("model.safetensors", folder / "model.safetensors");
  expect_refused(folder.path(), "cannot follow", ErrorCode::kIo);
}

TEST(Checkpoint, rejects_folders_without_one_checkpoint) {
  TestFolder folder;
  expect_refused(folder.path(), "no checkpoint", ErrorCode::kNotFound);
  folder.write("other.bin", "");
  expect_refused(folder.path(), "pickles", ErrorCode::kUnsupportedFeature);
  folder.write("a.safetensors", shard({}));
  EXPECT_TRUE(Checkpoint::open(folder.path()).has_value());
  folder.write("b.safetensors", shard({}));
  expect_refused(folder.path(), "2 safetensors files but no index", ErrorCode::kInvalidInput);
  folder.write("a.safetensors.index.json", index({{"a", "s.safetensors"}}));
  folder.write("b.safetensors.index.json", index({{"a", "s.safetensors"}}));
  expect_refused(folder.path(), "several checkpoints", ErrorCode::kInvalidInput);
  expect_refused(folder / "none", "none", ErrorCode::kNotFound);
}

TEST(Checkpoint, rejects_missing_shards) {
  TestFolder folder;
  write_shards(folder);
  fs::remove(folder / "s2.safetensors");
  expect_refused(folder.path(), "1 of 2 shards are missing", ErrorCode::kNotFound);
  expect_refused(folder.path(), "s2.safetensors", ErrorCode::kNotFound);
}

TEST(Checkpoint, rejects_truncated_shards) {
  TestFolder folder;
  write_shards(folder);
  fs::resize_file(folder / "s2.safetensors", fs::file_size(folder / "s2.safetensors") - 2);
  expect_refused(folder.path(), "s2.safetensors\" is truncated");
}

TEST(Checkpoint, rejects_an_index_that_contradicts_its_shards) {
  TestFolder folder;
  write_shards(folder);
  folder.write(kIndex, index({{"a", "s1.safetensors"}, {"b", "s2.safetensors"}}));
  expect_refused(folder.path(), "does not list tensor \"c\"");
  folder.write(
      kIndex,
      index({{"a", "s1.safetensors"}, {"b", "s1.safetensors"}, {"b2", "s2.safetensors"}, {"c", "s1.safetensors"}}));
  expect_refused(folder.path(), "places tensor \"b\" in \"s1.safetensors\", but \"s2.safetensors\"");
  folder.write(
      kIndex,
      index({{"a", "s1.safetensors"}, {"aa", "s2.safetensors"}, {"b", "s2.safetensors"}, {"c", "s1.safetensors"}}));
  expect_refused(folder.path(), "places tensor \"aa\" in \"s2.safetensors\", which does not hold it");
  folder.write(
      kIndex,
      index({{"a", "s1.safetensors"}, {"b", "s2.safetensors"}, {"c", "s1.safetensors"}, {"d", "s1.safetensors"}}));
  expect_refused(folder.path(), "places tensor \"d\"");
}

TEST(Checkpoint, rejects_a_tensor_in_two_shards) {
  TestFolder folder;
  write_shards(folder);
  folder.write("s2.safetensors", shard({{"b", "BBB"}, {"a", "A"}}));
  expect_refused(folder.path(), "in two shards, \"s1.safetensors\" and \"s2.safetensors\"");
}

void expect_bad_index(const std::string& text, std::string_view part) {
  expect_error(parse_checkpoint_index(text, "index.json"), ErrorCode::kCorruptFile, part);
}

TEST(CheckpointIndex, rejects_what_is_no_index) {
  expect_bad_index("[]", "no weight_map");
  expect_bad_index("{\"weight_map\":1}", "no weight_map");
  expect_bad_index("{\"weight_map\":{}}", "is empty");
  expect_bad_index("{\"weight_map\":{\"a\":1}}", "not text");
  expect_bad_index("{\"weight_map\":{\"\":\"s.safetensors\"}}", "empty name");
}

TEST(CheckpointIndex, rejects_duplicates) {
  expect_bad_index(R"({"weight_map":{"a":"s.safetensors","b":"s.safetensors","a":"t.safetensors"}})", "\"a\" twice");
}

TEST(CheckpointIndex, rejects_paths_that_leave_the_folder) {
  for (const char* path :
       {"/etc/s.safetensors", "../s.safetensors", "a/../../s.safetensors", "..", "", "a\\\\s.safetensors",
        "./s.safetensors", "a//s.safetensors", "s\\u0000.safetensors", "C:s.safetensors"}) {
    expect_bad_index(std::string(R"({"weight_map":{"a":")") + path + "\"}}", "not a plain path");
  }
}

TEST(CheckpointIndex, rejects_other_kinds_of_files) {
  expect_bad_index(R"({"weight_map":{"a":"config.json"}})", "not called *.safetensors");
}

TEST(CheckpointTest, remembers_tensors_in_which_it_read_what_is_no_number) {
  TestFolder folder;
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
      R"("c":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}})";
  const float values[] = {1, 2, 3, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 6};
  uint64_t length = header.size();
  folder.write("m.safetensors", std::string(reinterpret_cast<const char*>(&length), 8) + header +
                                    std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  Checkpoint checkpoint = *Checkpoint::open(folder / "m.safetensors");
  bytes_of_tensor(checkpoint, "a");
  EXPECT_TRUE(checkpoint.non_finite().empty());
  bytes_of_tensor(checkpoint, "b");
  EXPECT_EQ(checkpoint.non_finite(), std::vector<std::string>{"b"});
  bytes_of_tensor(checkpoint, "c");
  EXPECT_EQ(checkpoint.non_finite(), (std::vector<std::string>{"b", "c"}));
}

}  // namespace
}  // namespace argosy
