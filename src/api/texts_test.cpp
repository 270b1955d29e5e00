#include "api/texts.h"

#include <gtest/gtest.h>

namespace argosy::api {
namespace {

TEST(Texts, of_a_report_are_read_as_they_are_written) {
  const LintReport report{"genai", 2, 7, {{true, "a-rule", "a.onnx", "what", "hint"}, {false, "b", "", "\n", ""}}};
  const auto read = from_texts<LintReport>(texts_of(report));
  EXPECT_EQ(read.engine, "genai");
  EXPECT_EQ(read.graphs, 2U);
  EXPECT_EQ(read.files, 7U);
  ASSERT_EQ(read.findings.size(), 2U);
  EXPECT_TRUE(read.findings[0].is_error);
  EXPECT_EQ(read.findings[0].hint, "hint");
  EXPECT_FALSE(read.findings[1].is_error);
  EXPECT_EQ(read.findings[1].what, "\n");
}

TEST(Texts, of_a_description_are_read_as_they_are_written) {
  BundleDescription bundle;
  bundle.format = "argosy-onnx";
  bundle.options = {"--dtype=float32", ""};
  bundle.graphs = {{"a.onnx", "decode", ""}, {"b.pte", "model", "forward"}};
  bundle.check = {"full", "", "compared", R"({"kl": 0.1})"};
  bundle.variants = {{"q4", {"off", "not asked for", "", ""}}};
  const auto read = from_texts<BundleDescription>(texts_of(bundle));
  EXPECT_EQ(read.options, bundle.options);
  ASSERT_EQ(read.graphs.size(), 2U);
  EXPECT_EQ(read.graphs[1].method, "forward");
  EXPECT_EQ(read.check.quality, bundle.check.quality);
  ASSERT_EQ(read.variants.size(), 1U);
  EXPECT_EQ(read.variants[0].check.why, "not asked for");
  EXPECT_EQ(texts_of(read), texts_of(bundle));
}

TEST(Texts, of_a_request_are_read_as_they_are_written) {
  const CacheRequest request{"m", "c", ExportFormat::kPt2, "t", "s", "fp16", true, true};
  const auto read = from_texts<CacheRequest>(texts_of(request));
  EXPECT_EQ(read.format, ExportFormat::kPt2);
  EXPECT_TRUE(read.prefill && read.trust_remote_code);
  EXPECT_EQ(texts_of(read), texts_of(request));
  EXPECT_EQ(texts_of(request), (std::vector<std::string>{"m", "c", "2", "t", "s", "fp16", "1", "1"}));
}

}  // namespace
}  // namespace argosy::api
