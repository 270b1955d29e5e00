#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "ir/rewriter.h"
#include "ir/text.h"
#include "passes/compact_ids.h"
#include "passes/eliminate_dead_code.h"
#include "passes/verify_program.h"

namespace argosy {
namespace {

constexpr std::string_view kProgram = R"(
schema aten::relu(Tensor self) -> Tensor
graph (%x: f32[2]) {
  %dead: f32[2] = aten.relu.default(self=%x)
  %y: f32[2] = aten.relu.default(self=%x)
  return %y
}
)";

Program parsed() { return parse(kProgram).value(); }

Pass failing() {
  return {"fail", [](Program& program, PassContext&) -> Result<bool> {
            program.components.clear();
            return fail(ErrorCode::kUnsupportedFeature, "cannot");
          }};
}

TEST(PipelineTest, runs_in_order_and_says_what_changed) {
  Program program = parsed();
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  std::vector<std::string> seen;
  PipelineHooks hooks;
  hooks.verify_each = true;
  hooks.after_pass = [&](const std::string& pass, const Program&, bool has_changed, double) {
    seen.push_back(pass + (has_changed ? "+" : "-"));
  };
  Pipeline pipeline = parse_pipeline("eliminate-dead-code,eliminate-dead-code,compact-ids,compact-ids,verify").value();
  EXPECT_TRUE(pipeline.run(program, context, hooks).value());
  EXPECT_EQ(seen, (std::vector<std::string>{"eliminate-dead-code+", "eliminate-dead-code-", "compact-ids+",
                                            "compact-ids-", "verify-"}));
  EXPECT_EQ(program.components[0].entry().node_limit(), 1u);
}

TEST(PipelineTest, a_failure_hands_out_the_program_before_and_what_was_left_to_do) {
  Program program = parsed();
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  PipelineHooks hooks;
  int failures = 0;
  hooks.on_failure = [&](const Program& before, std::span<const std::string> remaining, const Error& error) {
    ++failures;
    EXPECT_EQ(before.components.at(0).entry().node_count(), 1u);
    EXPECT_EQ(std::vector<std::string>(remaining.begin(), remaining.end()),
              (std::vector<std::string>{"fail", "compact-ids"}));
    EXPECT_EQ(error.frames.back().what, "pass fail");
  };
  Pipeline pipeline;
  pipeline.add(eliminate_dead_code()).add(failing()).add(compact_ids());
  EXPECT_EQ(pipeline.run(program, context, hooks).error().message, "cannot");
  EXPECT_EQ(failures, 1);
}

TEST(PipelineTest, a_bug_in_a_pass_becomes_an_error) {
  Program program = parsed();
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Pipeline pipeline;
  pipeline.add({"buggy", [](Program&, PassContext&) -> Result<bool> {
                  ARGOSY_CHECK(false, "oops");
                  return true;
                }});
  Error error = pipeline.run(program, context).error();
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_NE(error.message.find("oops"), std::string::npos);
}

TEST(PipelineTest, verify_each_catches_a_pass_that_breaks_the_program) {
  Program program = parsed();
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  Pipeline pipeline;
  pipeline.add({"break", [](Program& broken, PassContext&) -> Result<bool> {
                  Graph& graph = broken.components[0].graphs[0];
                  Rewriter(graph).set_argument(graph.first(), 0, Argument(int64_t{3}));
                  return true;
                }});
  EXPECT_TRUE(pipeline.run(program, context));
  PipelineHooks hooks;
  hooks.verify_each = true;
  EXPECT_EQ(pipeline.run(program, context, hooks).error().code, ErrorCode::kInternal);
}

TEST(PipelineTest, rejects_unknown_names) {
  Error error = parse_pipeline("verify,no-such").error();
  EXPECT_EQ(error.message, "there is no pass \"no-such\"");
  EXPECT_TRUE(error.hint.starts_with("the passes are: compact-ids, ")) << error.hint;
  EXPECT_TRUE(error.hint.ends_with(", verify")) << error.hint;
}

Result<Pass> made_with(std::string_view settings) {
  ARGOSY_TRY(auto numbers, parse_settings(settings));
  return Pass{"sizes", [](Program&, PassContext&) -> Result<bool> { return false; }, settings_text(numbers)};
}

TEST(PipelineTest, settings_are_part_of_a_pass) {
  constexpr NamedPass kKnown[] = {{"sizes", "", nullptr, made_with}, {"verify", "", verify_program}};
  Pipeline pipeline = parse_pipeline("verify,sizes{b=2,a=1},verify", kKnown).value();
  ASSERT_EQ(pipeline.passes().size(), 3);
  EXPECT_EQ(pipeline.passes()[1].text(), "sizes{a=1,b=2}");
  EXPECT_EQ(parse_pipeline("sizes{a}", kKnown).error().message, "\"a\" is no setting of a pass");
  EXPECT_EQ(parse_pipeline("verify{a=1}", kKnown).error().message, "pass verify has no settings");
}

}  // namespace
}  // namespace argosy
