#include "debug/golden.h"

#include <gtest/gtest.h>

namespace argosy {
namespace {

constexpr std::string_view kFile =
    "# what it shows\n"
    "# passes: verify, eliminate-dead-code\n"
    "schema aten::neg(Tensor self) -> Tensor\n"
    "graph (%x: f32[4]) {\n"
    "  %dead: f32[4] = aten.neg.default(self=%x)\n"
    "  return %x\n"
    "}\n"
    "# ---- expect\n"
    "graph (%x: f32[4]) {\n"
    "  return %x\n"
    "}\n";

GoldenFile parsed(std::string_view text) {
  auto golden = parse_golden(text, "t.ir");
  EXPECT_TRUE(golden) << to_text(golden.error());
  return golden.value_or(GoldenFile{});
}

void expect_refused(std::string_view text, std::string_view message) {
  auto golden = parse_golden(text, "t.ir");
  ASSERT_FALSE(golden);
  EXPECT_EQ(golden.error().message, message);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  result.replace(result.find(from), from.size(), to);
  return result;
}

TEST(Golden, parts_are_taken_apart) {
  GoldenFile golden = parsed(kFile);
  EXPECT_EQ(golden.passes, "verify,eliminate-dead-code");
  EXPECT_EQ(golden.header, "# what it shows\n# passes: verify, eliminate-dead-code\n");
  EXPECT_FALSE(golden.expects_error);
  EXPECT_EQ(golden.expected, "graph (%x: f32[4]) {\n  return %x\n}\n");
}

TEST(Golden, the_expected_outcome_has_no_difference_and_gives_the_same_file) {
  GoldenFile golden = parsed(kFile);
  GoldenOutcome outcome = run_golden(golden);
  EXPECT_EQ(golden_difference(golden, outcome, "t.ir"), "");
  EXPECT_EQ(with_outcome(golden, outcome), kFile);
}

TEST(Golden, another_outcome_is_shown_and_can_be_accepted) {
  GoldenFile golden = parsed(replaced(kFile, "---- expect\ngraph (%x", "---- expect\ngraph (%z"));
  GoldenOutcome outcome = run_golden(golden);
  std::string difference = golden_difference(golden, outcome, "t.ir");
  EXPECT_NE(difference.find("-graph (%z: f32[4]) {\n+graph (%x: f32[4]) {\n"), std::string::npos) << difference;
  EXPECT_EQ(with_outcome(golden, outcome), kFile);
}

TEST(Golden, an_error_is_an_outcome) {
  GoldenFile golden = parsed(replaced(kFile, "verify, eliminate", "no-such-pass, eliminate"));
  GoldenOutcome outcome = run_golden(golden);
  EXPECT_TRUE(outcome.is_error);
  EXPECT_NE(outcome.text.find("error[invalid-input]: there is no pass \"no-such-pass\""), std::string::npos)
      << outcome.text;
  GoldenFile updated = parsed(with_outcome(golden, outcome));
  EXPECT_TRUE(updated.expects_error);
  EXPECT_EQ(golden_difference(updated, run_golden(updated), "t.ir"), "");
}

TEST(Golden, rejects_a_file_without_passes) {
  expect_refused("graph () {\n}\n# ---- expect\n", "t.ir has no line \"# passes:\" before its program");
}

TEST(Golden, rejects_a_file_with_two_lines_of_passes) {
  expect_refused("# passes: a\n# passes: b\n# ---- expect\n", "t.ir has two lines \"# passes:\"");
}

TEST(Golden, rejects_a_file_without_expectation) {
  expect_refused("# passes: a\ngraph () {\n}\n", "t.ir has no line \"# ---- expect\"");
}

}  // namespace
}  // namespace argosy
