#include "cache/check_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "cache/cache_contents.h"
#include "cache/obtain.h"
#include "io/test_folder.h"

namespace argosy {
namespace {

constexpr std::string_view kPassed =
    R"({"format":"argosy-check","version":1,"ok":true,"engine":"pt2","model_class":"M","task":"","versions":)"
    R"({"torch":"2.13.0"},"rows":[{"component":"decode","call":"edge","shape":"1x1 on 0","ok":true,"abs":1e-6},)"
    R"({"component":"decode","call":"greedy","shape":"12","ok":null,"abs":null}]})";
constexpr std::string_view kFailed =
    R"({"format":"argosy-check","version":1,"ok":false,"engine":"pt2","model_class":"M","rows":[{"component":)"
    R"("decode","call":"edge","shape":"1x1 on 0","ok":false,"abs":"Infinity","note":"logits is off by inf"}]})";

std::filesystem::path write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  return path;
}

Result<Obtained> obtain_check(const CaptureCache& cache, std::string_view text, int& made) {
  CacheWork work;
  work.kind = CacheKind::kCheck;
  work.key = std::string(64, 'a');
  work.make = [&](const std::filesystem::path& output) -> Status {
    ++made;
    write(output, text);
    return {};
  };
  return obtain(cache, work);
}

TEST(CheckReport, reads_figures_and_what_is_wrong) {
  TestFolder folder;
  auto passed = CheckReport::read(write(folder / "passed.json", kPassed));
  ASSERT_TRUE(passed.has_value()) << to_text(passed.error());
  EXPECT_TRUE(passed->ok);
  EXPECT_EQ(passed->calls, 2U);
  EXPECT_DOUBLE_EQ(passed->largest, 1e-6);
  EXPECT_TRUE(passed->wrong.empty());
  auto failed = CheckReport::read(write(folder / "failed.json", kFailed));
  ASSERT_TRUE(failed.has_value());
  EXPECT_FALSE(failed->ok);
  EXPECT_TRUE(std::isinf(failed->largest));
  EXPECT_EQ(failed->wrong, std::vector<std::string>{"decode at 1x1 on 0 (edge): logits is off by inf"});
}

TEST(CheckReport, tells_of_an_engine_that_is_not_there) {
  TestFolder folder;
  constexpr std::string_view kText =
      R"({"format":"argosy-check","version":1,"ok":true,"rows":[{"component":"bundle","call":"engine","shape":"",)"
      R"("ok":null,"note":"it is not installed"},{"component":"bundle","call":"tokens","shape":"","ok":null,"note":"x"}]})";
  auto report = CheckReport::read(write(folder / "x.json", kText));
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->engine_missing, "it is not installed");
  EXPECT_EQ(CheckReport::read(write(folder / "passed.json", kPassed)).value().engine_missing, "");
}

TEST(CheckReport, rejects_what_is_none) {
  TestFolder folder;
  for (std::string_view text :
       {"", "{}", R"({"format":"argosy-check","version":2,"ok":true,"rows":[]})",
        R"({"format":"argosy-check","version":1,"rows":[]})", R"({"format":"argosy-check","version":1,"ok":true})"}) {
    EXPECT_FALSE(CheckReport::read(write(folder / "x.json", text)).has_value()) << text;
  }
}

TEST(CheckReport, only_passed_checks_are_remembered) {
  TestFolder folder;
  CaptureCache cache(folder / "cache");
  int made = 0;
  EXPECT_FALSE(obtain_check(cache, kFailed, made).has_value());
  EXPECT_FALSE(obtain_check(cache, "nonsense", made).has_value());
  auto first = obtain_check(cache, kPassed, made);
  ASSERT_TRUE(first.has_value()) << to_text(first.error());
  EXPECT_FALSE(first->was_cached);
  auto second = obtain_check(cache, kPassed, made);
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->was_cached);
  EXPECT_EQ(made, 3);
  auto about = describe(second->entry);
  ASSERT_TRUE(about.has_value());
  EXPECT_EQ(about->model_class, "M");
  EXPECT_EQ(about->torch, "2.13.0");
}

TEST(CheckReport, the_key_is_of_capture_backend_and_options) {
  TestFolder folder;
  auto one = write(folder / "one", "1"), copy = write(folder / "copy", "1"), other = write(folder / "other", "2");
  std::string key = twin_check_key(one, "pt2", "").value();
  EXPECT_EQ(key.size(), 64U);
  EXPECT_EQ(twin_check_key(copy, "pt2", "").value(), key);
  EXPECT_NE(twin_check_key(other, "pt2", "").value(), key);
  EXPECT_NE(twin_check_key(one, "onnx", "").value(), key);
  EXPECT_NE(twin_check_key(one, "pt2", "x").value(), key);
  EXPECT_FALSE(twin_check_key(folder / "absent", "pt2", "").has_value());
}

}  // namespace
}  // namespace argosy
