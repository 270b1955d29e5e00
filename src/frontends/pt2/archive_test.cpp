#include "frontends/pt2/archive.h"

#include <gtest/gtest.h>

#include <cstring>

#include "frontends/pt2/graph_json_testing.h"
#include "frontends/zip_testing.h"

namespace argosy {
namespace {

using T = GraphText;

std::string payload(std::string_view name, std::string_view path, const std::string& sizes, const std::string& strides,
                    int64_t offset = 0) {
  return format(
      R"("{}": {{"path_name": "{}", "is_param": true, "use_pickle": false, "tensor_meta": {{"dtype": 7, "sizes": [{}], )"
      R"("requires_grad": true, "device": {{"type": "cpu", "index": null}}, "strides": [{}], "storage_offset": {{"as_int": {}}}, )"
      R"("layout": 7}}}})",
      name, path, sizes, strides, offset);
}

std::string floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

constexpr const char* k2x3 = R"({"as_int": 2}, {"as_int": 3})";
constexpr const char* kRowMajor = R"({"as_int": 3}, {"as_int": 1})";
constexpr const char* kTransposed = R"({"as_int": 1}, {"as_int": 2})";

class Archive : public testing::Test {
 protected:
  void SetUp() override {
    GraphText text;
    for (const char* name : {"a", "b", "c"}) text.add_parameter(format("p_{}", name), name, 7, {2, 3});
    text.add_output("p_a");
    entries_ = {{"m/archive_format", "pt2"},
                {"m/archive_version", "0"},
                {"m/byteorder", "little"},
                {"m/data/weights/weight_0", floats({0, 1, 2, 3, 4, 5, 6, 7})},
                {"m/data/weights/weight_1", floats({0, 1, 2, 3, 4, 5})},
                {"m/data/weights/model_weights_config.json",
                 format(R"({{"config": {{{}, {}, {}}}}})", payload("a", "weight_0", k2x3, kRowMajor, 2),
                        payload("b", "weight_0", k2x3, kRowMajor, 2), payload("c", "weight_1", k2x3, kTransposed))},
                {"m/data/constants/model_constants_config.json", R"({"config": {}})"},
                {"m/models/model.json", text.text()},
                {"m/data/sample_inputs/model.pt", "opaque"}};
  }

  Result<Program> read() {
    std::filesystem::path path = test_file(".pt2");
    write_zip(path, entries_);
    Result<ZipReader> zip = ZipReader::open(path);
    if (!zip) return fail(zip.error());
    SchemaLibrary library = test_schemas();
    Result<Program> program = read_pt2(*zip, {.schemas = &library, .diagnostics = nullptr, .sample_inputs = &samples_});
    std::filesystem::remove(path);  // sources keep the file open
    return program;
  }

  std::string error() {
    Result<Program> program = read();
    EXPECT_FALSE(program.has_value());
    return program ? std::string() : program.error().message;
  }

  static std::vector<float> values(const Weight& weight) {
    std::string bytes;
    Status status = weight.source->stream_to(
        [&](std::span<const std::byte> block) -> Status {
          bytes.append(reinterpret_cast<const char*>(block.data()), block.size());
          return {};
        },
        1 << 20);
    EXPECT_TRUE(status.has_value()) << (status ? "" : to_text(status.error()));
    std::vector<float> result(bytes.size() / sizeof(float));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  ZipEntries entries_;
  std::map<std::string, TensorSourcePtr> samples_;
};

TEST_F(Archive, weights_are_slices_of_the_file) {
  Result<Program> program = read();
  ASSERT_TRUE(program.has_value()) << to_text(program.error());
  ASSERT_EQ(program->weights.size(), 3u);
  EXPECT_EQ(values(program->weights[0]), (std::vector<float>{2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(program->weights[0].source->file_range().has_value());
}

TEST_F(Archive, equal_slices_are_tied) {
  Result<Program> program = read();
  ASSERT_TRUE(program.has_value());
  EXPECT_FALSE(program->weights[0].tied_to.is_valid());
  EXPECT_EQ(program->weights[1].tied_to, WeightId{0});
  EXPECT_FALSE(program->weights[2].tied_to.is_valid());
  const Graph& graph = program->components[0].entry();
  EXPECT_EQ(graph[graph.weights()[0]].storage, graph[graph.weights()[1]].storage);
}

TEST_F(Archive, transposed_weights_are_read_in_their_order) {
  Result<Program> program = read();
  ASSERT_TRUE(program.has_value());
  EXPECT_EQ(values(program->weights[2]), (std::vector<float>{0, 2, 4, 1, 3, 5}));
}

TEST_F(Archive, empty_entries_are_weights_without_bytes) {
  entry(entries_, "m/data/weights/weight_0").clear();
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), "\"storage_offset\": {\"as_int\": 2}",
          "\"storage_offset\": {\"as_int\": 0}");
  Result<Program> program = read();
  ASSERT_TRUE(program.has_value()) << to_text(program.error());
  EXPECT_TRUE(program->weights[0].source->recipe().starts_with("shape_only("));
  EXPECT_FALSE(program->weights[1].tied_to.is_valid());
}

TEST_F(Archive, sample_inputs_are_handed_on) {
  ASSERT_TRUE(read().has_value());
  ASSERT_TRUE(samples_.contains("model"));
  EXPECT_EQ(samples_["model"]->bytes(), 6);
}

TEST_F(Archive, models_share_weights_of_equal_content_only) {
  for (const char* name : {"m/data/weights/model_weights_config.json", "m/data/constants/model_constants_config.json",
                           "m/models/model.json"}) {
    std::string copy(name);
    copy.replace(copy.rfind("/model") + 1, 5, "other");
    entries_.emplace_back(copy, entry(entries_, name));
  }
  replace(entry(entries_, "m/data/weights/other_weights_config.json"), "\"path_name\": \"weight_1\"",
          "\"path_name\": \"weight_0\"");
  Result<Program> program = read();
  ASSERT_TRUE(program.has_value()) << to_text(program.error());
  EXPECT_EQ(program->components.size(), 2u);
  ASSERT_EQ(program->weights.size(), 4u);
  EXPECT_EQ(program->weights[3].name, "other/c");
}

TEST_F(Archive, rejects_pickles) {
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), "\"use_pickle\": false", "\"use_pickle\": true");
  EXPECT_NE(error().find("\"a\" is stored as a pickle"), std::string::npos);
}

TEST_F(Archive, rejects_strided_views) {
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), kTransposed, R"({"as_int": 1}, {"as_int": 4})");
  EXPECT_NE(error().find("\"c\" is a strided view"), std::string::npos);
}

TEST_F(Archive, rejects_slices_beyond_the_entry) {
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), "\"storage_offset\": {\"as_int\": 2}",
          "\"storage_offset\": {\"as_int\": 3}");
  EXPECT_NE(error().find("needs bytes beyond the 32"), std::string::npos);
}

TEST_F(Archive, rejects_offsets_that_overflow) {
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), "\"storage_offset\": {\"as_int\": 2}",
          "\"storage_offset\": {\"as_int\": 9223372036854775807}");
  EXPECT_NE(error().find("is negative or overflows"), std::string::npos);
}

TEST_F(Archive, rejects_paths_out_of_the_folder) {
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), "weight_1", "../weights/weight_1");
  EXPECT_NE(error().find("not a plain file name"), std::string::npos);
}

TEST_F(Archive, rejects_missing_tensors) {
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), "\"c\":", "\"d\":");
  EXPECT_NE(error().find("no tensor for weight \"c\""), std::string::npos);
}

TEST_F(Archive, rejects_shapes_that_differ_from_the_graph) {
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), k2x3, R"({"as_int": 3}, {"as_int": 2})");
  replace(entry(entries_, "m/data/weights/model_weights_config.json"), kRowMajor, R"({"as_int": 2}, {"as_int": 1})");
  EXPECT_NE(error().find("differ on dtype or shape of weight \"a\""), std::string::npos);
}

TEST_F(Archive, rejects_other_versions_and_byte_orders) {
  entry(entries_, "m/archive_version") = "1";
  Result<Program> program = read();
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, ErrorCode::kUnsupportedVersion);
  entry(entries_, "m/archive_version") = "0";
  entry(entries_, "m/byteorder") = "big";
  EXPECT_NE(error().find("byteorder is \"big\""), std::string::npos);
}

TEST_F(Archive, rejects_archives_without_a_graph) {
  entries_.erase(entries_.begin() + 7);
  EXPECT_NE(error().find("has no graph"), std::string::npos);
  entries_.erase(entries_.begin());
  EXPECT_NE(error().find("not an archive of torch.export.save"), std::string::npos);
}

}  // namespace
}  // namespace argosy
