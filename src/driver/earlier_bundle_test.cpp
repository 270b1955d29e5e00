#include "driver/earlier_bundle.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/text.h"
#include "io/file.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

class EarlierBundle : public testing::Test {
 protected:
  void write(const std::string& manifest, const std::string& place = "") {
    folder_.write(place + "bundle.json", manifest);
  }
  Result<std::vector<EarlierVariant>> variants(std::string_view engine = "transformersjs") {
    return read_earlier_variants(folder_.path(), engine);
  }
  void refused(std::string_view part, std::string_view engine = "transformersjs") {
    expect_error(variants(engine), ErrorCode::kInvalidInput, part);
  }
  /// Of a bundle that was exported alone.
  std::vector<std::string> names_of(const std::string& members) {
    write(format(R"({{"format": "argosy-onnx", "engine": "transformersjs", {}}})", members));
    std::vector<std::string> names;
    auto found = variants();
    EXPECT_TRUE(found) << found.error().message;
    for (const EarlierVariant& each : *found) names.push_back(each.name);
    return names;
  }

  TestFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(EarlierBundle, has_variants_with_their_checks) {
  write(R"({"format": "argosy-onnx", "engine": "transformersjs", "variants": [
    {"name": "fp32", "check": {"kind": "off", "why": "not asked for"}},
    {"name": "q4", "check": {"kind": "full", "why": "", "compared": "all", "quality": {"agreement": 0.75, "tokens": 8}}}]})");
  auto found = variants();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].name, "fp32");
  EXPECT_EQ((*found)[0].check.text(), "none (not asked for)");
  EXPECT_EQ((*found)[1].check.text(), "all");
  EXPECT_EQ((*found)[1].check.quality, R"({"agreement":0.75,"tokens":8})");
}

TEST_F(EarlierBundle, is_one_variant_by_its_options) {
  EXPECT_EQ(names_of(R"("options": ["--dtype=float32", "--quantize=int4"])"), Names{"q4"});
  EXPECT_EQ(names_of(R"("options": ["--dtype=float16", "--quantize=int4"])"), Names{"q4f16"});
  EXPECT_EQ(names_of(R"("options": ["--dtype=float16"])"), Names{"fp16"});
  EXPECT_EQ(names_of(R"("options": [])"), Names{"fp32"});
  EXPECT_EQ(names_of(R"("options": [], "components": [{"outputs": [{"name": "logits", "dtype": "f16"}]}])"),
            Names{"fp16"});
}

TEST_F(EarlierBundle, may_be_a_folder_of_folders) {
  write(R"({"format": "argosy-variants", "folders": ["fp32", "q8"]})");
  write(R"({"format": "argosy-onnx", "engine": "genai", "check": {"kind": "twin", "compared": "a"}})", "fp32/");
  write(R"({"format": "argosy-onnx", "engine": "genai", "check": {"kind": "twin", "compared": "b"}})", "q8/");
  auto found = variants("genai");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[1].name, "q8");
  EXPECT_EQ((*found)[1].check.compared, "b");
  refused(R"(is for "genai", not for optimum)", "optimum");
  write(R"({"format": "argosy-variants", "folders": ["../x"]})");
  refused("of no variant", "genai");
  write(R"({"format": "argosy-variants", "folders": []})");
  refused("lists no variants", "genai");
}

TEST_F(EarlierBundle, rejects_folders_that_no_variant_can_be_added_to) {
  refused("has no bundle");
  write(R"({"format": "argosy-executorch"})");
  refused("is no bundle of argosy export onnx");
  write(R"({"format": "argosy-onnx", "engine": "optimum"})");
  refused(R"(is for "optimum", not for transformersjs)");
  refused("is itself a bundle of one variant", "optimum");
  write(R"({"format": "argosy-onnx", "engine": "transformersjs", "options": ["--quantize=int4,lm_head=int8"]})");
  refused("in a way that is no variant");
  write("{");
  EXPECT_FALSE(variants());
}

TEST(SameMaking, names_what_differs) {
  const std::string before =
      R"({"engine": "genai", "source": {"name": "a"}, "argosy": "1", "options": ["--dtype=fp32,q4", "--opset=21"]})";
  auto compare = [&](const std::string& now) {
    JsonDocument one = JsonDocument::parse(before, "a").value(), other = JsonDocument::parse(now, "b").value();
    return check_same_making(one.root(), other.root(), "out");
  };
  // Variants, and how they are stored and checked, may differ.
  EXPECT_TRUE(compare(R"({"check": 1, "engine": "genai", "source": {"name": "a"}, "argosy": "1",
                          "options": ["--dtype=fp32,q4,q8", "--opset=21", "--quantize-block=32"]})"));
  expect_error(compare(R"({"engine": "genai", "source": {"name": "b"}, "argosy": "1", "options": ["--opset=21"]})"),
               ErrorCode::kInvalidInput, R"("out" was made of another model (source of bundle.json differs))");
  expect_error(compare(R"({"engine": "genai", "source": {"name": "a"}, "argosy": "2", "options": ["--opset=21"]})"),
               ErrorCode::kInvalidInput, "by another version of argosy");
  expect_error(compare(R"({"engine": "genai", "source": {"name": "a"}, "argosy": "1", "options": []})"),
               ErrorCode::kInvalidInput, R"(with other options: "--opset=21" instead of "")");
}

TEST(KeepFile, leaves_bytes_and_time) {
  TestFolder folder;
  folder.write("old/x.bin", "bytes");
  fs::path from = folder / "old/x.bin", to = folder / "new/inner/x.bin";
  fs::last_write_time(from, fs::file_time_type::clock::now() - std::chrono::hours(5));
  ASSERT_TRUE(keep_file(from, to));
  EXPECT_EQ(read_text_file(to).value(), "bytes");
  EXPECT_EQ(fs::last_write_time(to), fs::last_write_time(from));
  EXPECT_FALSE(keep_file(folder / "old/none", folder / "new/none"));
}

}  // namespace
}  // namespace argosy
