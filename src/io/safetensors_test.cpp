#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/safetensors_writer.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

Result<SafetensorsHeader> parse(std::string_view json, uint64_t data_bytes) {
  return parse_safetensors_header(std::string(json), 8 + json.size() + data_bytes, "x.safetensors");
}

void expect_refused(std::string_view json, uint64_t data_bytes, std::string_view part,
                    ErrorCode code = ErrorCode::kCorruptFile) {
  auto header = parse(json, data_bytes);
  expect_error(header, code, part);
  expect_error(header, code, "x.safetensors");
}

TEST(Safetensors, reads_a_header) {
  std::string json =
      R"({"__metadata__":{"format":"pt","a":"b"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("s":{"shape":[],"data_offsets":[0,4],"dtype":"F32","extra":[1]},)"
      R"("e":{"dtype":"F32","shape":[0,9],"data_offsets":[16,16]}}   )";
  auto header = parse(json, 16);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  ASSERT_EQ(header->tensors.size(), 3u);
  EXPECT_EQ(header->tensors[0].name, "s");
  EXPECT_EQ(header->tensors[0].offset, 8 + json.size());
  EXPECT_EQ(header->tensors[0].bytes, 4u);
  EXPECT_EQ(header->tensors[1].name, "w");
  EXPECT_EQ(header->tensors[1].dtype, DType::kBF16);
  EXPECT_EQ(header->tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header->tensors[1].offset, 8 + json.size() + 4);
  EXPECT_EQ(header->tensors[2].name, "e");
  ASSERT_EQ(header->metadata.size(), 2u);
  EXPECT_EQ(header->metadata[0], (std::pair<std::string, std::string>("a", "b")));
}

TEST(Safetensors, reads_packed_types) {
  EXPECT_TRUE(parse(R"({"w":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}})", 3).has_value());
}

TEST(Safetensors, rejects_bad_lengths) {
  auto length = [](uint64_t value, uint64_t file_size) {
    std::byte bytes[8];
    std::memcpy(bytes, &value, 8);
    return safetensors_header_length(std::span(bytes).first(std::min<uint64_t>(8, file_size)), file_size, "x");
  };
  EXPECT_EQ(*length(100, 108), 100u);
  expect_error(length(0, 7), ErrorCode::kCorruptFile, "only 7 bytes");
  expect_error(length(101, 108), ErrorCode::kCorruptFile, "ends after 100");
  expect_error(length(100'000'001, uint64_t{1} << 40), ErrorCode::kCorruptFile, "100000001 bytes");
  expect_error(length(UINT64_MAX, 100), ErrorCode::kCorruptFile, "more than");
}

TEST(Safetensors, rejects_headers_that_are_no_object) {
  expect_refused("", 0, "is empty");
  expect_refused("[]", 0, "brace");
  expect_refused(" {}", 0, "brace");
  expect_refused("{", 0, "JSON");
}

TEST(Safetensors, rejects_bad_entries) {
  expect_refused(R"({"w":1})", 0, "not described by an object");
  expect_refused(R"({"w":{"shape":[],"data_offsets":[0,4]}})", 4, "no dtype");
  expect_refused(R"({"w":{"dtype":7,"shape":[],"data_offsets":[0,4]}})", 4, "no dtype");
  expect_refused(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4, "no shape");
  expect_refused(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[0]}})", 4, "data_offsets of two");
  expect_refused(R"({"w":{"dtype":"F32","shape":[]}})", 4, "data_offsets of two");
  expect_refused(R"({"w":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4, "dtype twice");
}

TEST(Safetensors, rejects_unknown_dtypes) {
  expect_refused(R"({"w":{"dtype":"F128","shape":[],"data_offsets":[0,4]}})", 4, "F128",
                 ErrorCode::kUnsupportedFeature);
}

TEST(Safetensors, rejects_bad_shapes) {
  expect_refused(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "negative dim -1");
  expect_refused(R"({"w":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "not an integer");
  expect_refused(R"({"w":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})", 4, "not an integer");
  expect_refused(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4, "overflows");
  expect_refused(R"({"w":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0, "overflows");
  expect_refused(R"({"w":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0, "overflows");
  expect_refused(R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "not whole bytes");
}

TEST(Safetensors, rejects_bad_offsets) {
  expect_refused(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[4,0]}})", 4, "before it begins");
  expect_refused(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[-4,0]}})", 4, "not unsigned");
  expect_refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
                 "takes 8 bytes by its dtype and shape, but 4");
}

TEST(Safetensors, rejects_overlaps) {
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6,
      "inside the tensor before it");
}

TEST(Safetensors, rejects_holes) {
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})",
      10, "belong to no tensor");
  expect_refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5, "belong to no tensor");
}

TEST(Safetensors, rejects_truncated_and_too_long_files) {
  std::string json = R"({"a":{"dtype":"U8","shape":[100],"data_offsets":[0,100]}})";
  expect_refused(json, 60, "is truncated: its tensors take 100 bytes, of which 40 are missing");
  EXPECT_NE(parse(json, 60).error().hint.find("get this file again"), std::string::npos);
  expect_refused(json, 103, "3 bytes follow");
}

TEST(Safetensors, rejects_bad_names) {
  expect_refused(R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, "empty name");
  expect_refused(
      R"({"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
      R"("b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
      0, "\"b\" twice");
  expect_refused("{\"\xff\":{}}", 0, "UTF-8");
}

TEST(Safetensors, rejects_bad_metadata) {
  expect_refused(R"({"__metadata__":[]})", 0, "not an object");
  expect_refused(R"({"__metadata__":{"a":1}})", 0, "not text");
  expect_refused(R"({"__metadata__":{"a":"1","a":"2"}})", 0, "\"a\" twice");
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__ twice");
}

TensorSourcePtr constant(std::string_view bytes, DType dtype, std::vector<int64_t> shape) {
  auto view = std::as_bytes(std::span(bytes));
  return *literal({view.begin(), view.end()}, dtype, std::move(shape));
}

TEST(SafetensorsWriter, writes_what_is_read) {
  TestFolder folder;
  auto layout = lay_out_safetensors({{"b", constant("xy", DType::kU8, {2})},
                                     {"z", constant("12345678", DType::kF32, {2, 1})},
                                     {"a", constant("q", DType::kBool, {})}},
                                    {{"format", "pt"}});
  ASSERT_TRUE(layout.has_value());
  auto file = *OutputFile::create(folder / "x.safetensors", Overwrite::kRefuse);
  ASSERT_TRUE(write_safetensors(*layout, file, 1 << 16).has_value());
  ASSERT_TRUE(file.commit().has_value());
  std::string bytes = folder.read("x.safetensors");
  EXPECT_EQ(bytes.size(), layout->total_bytes);
  EXPECT_EQ(layout->header.size() % 8, 0u);
  EXPECT_EQ(bytes.substr(layout->header.size()), "12345678qxy");
  auto header = read_safetensors_header(**ReadFile::open(folder / "x.safetensors"), "x");
  ASSERT_TRUE(header.has_value()) << header.error().message;
  ASSERT_EQ(header->tensors.size(), 3u);
  EXPECT_EQ(header->tensors[0].name, "z");
  EXPECT_EQ(header->tensors[2].name, "b");
  EXPECT_EQ(header->metadata.size(), 1u);
  std::string streamed;
  ByteSink sink = [&](std::span<const std::byte> more) -> Status {
    streamed.append(reinterpret_cast<const char*>(more.data()), more.size());
    return {};
  };
  ASSERT_TRUE(write_safetensors(*layout, sink, 1 << 16).has_value());
  EXPECT_EQ(streamed, bytes);
}

TEST(SafetensorsWriter, rejects_what_cannot_be_read) {
  auto tensor = constant("q", DType::kBool, {});
  expect_error(lay_out_safetensors({{"", tensor}}), ErrorCode::kInvalidInput, "cannot be the name");
  expect_error(lay_out_safetensors({{"__metadata__", tensor}}), ErrorCode::kInvalidInput, "cannot be the name");
  expect_error(lay_out_safetensors({{"\xff", tensor}}), ErrorCode::kInvalidInput, "cannot be the name");
  expect_error(lay_out_safetensors({{"a", tensor}, {"a", tensor}}), ErrorCode::kInvalidInput, "two tensors");
  expect_error(lay_out_safetensors({{"a", constant("q", DType::kI4, {2})}}), ErrorCode::kUnsupportedFeature, "i4");
}

}  // namespace
}  // namespace argosy
