#include "debug/watch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/pt2/lowering.h"
#include "debug/named_passes.h"
#include "debug/reproducer.h"
#include "driver/executorch/lower_executorch.h"
#include "driver/export_hooks.h"
#include "driver/onnx/lower_onnx.h"
#include "io/test_folder.h"
#include "ir/text.h"

namespace argosy {
namespace {

// A program whose schema of sqrt is not ours, so the similarity cannot be written with it.
constexpr std::string_view kOddRoot =
    "schema aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor\n"
    "schema aten::sqrt(Tensor value) -> Tensor\n"
    "graph (%x: f32[4, 2]) {\n"
    "  %y: f32[4, 2] = aten.sqrt.default(value=%x)\n"
    "  %z: f32[4] = aten.cosine_similarity.default(x1=%x, x2=%y, dim=1, eps=1e-08)\n"
    "  return %z\n"
    "}\n";
constexpr std::string_view kForeign =
    "schema mine::op(Tensor self) -> Tensor\n"
    "graph (%x: f32[4]) {\n"
    "  %y: f32[4] = mine.op.default(self=%x)\n"
    "  return %y\n"
    "}\n";
constexpr std::string_view kFine =
    "schema aten::neg(Tensor self) -> Tensor\n"
    "graph (%x: f32[4]) {\n"
    "  %y: f32[4] = aten.neg.default(self=%x)\n"
    "  return %y\n"
    "}\n";

class WatchTest : public testing::Test {
 protected:
  static Program program(std::string_view text) {
    auto parsed = parse(text);
    EXPECT_TRUE(parsed) << to_text(parsed.error());
    return *std::move(parsed);
  }
  std::filesystem::path folder() const { return root_ / "x.repro"; }

  /// That a failing pass left a reproducer, and that replaying it fails likewise.
  void expect_replay(const Status& status, const std::string& pass) {
    ASSERT_FALSE(status);
    auto reproducer = read_reproducer(folder());
    ASSERT_TRUE(reproducer) << to_text(reproducer.error());
    EXPECT_EQ(reproducer->passes.front(), pass);
    EXPECT_EQ(reproducer->error, to_text(status.error()));
    Status again = replay(*reproducer);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message, status.error().message);
  }

  /// Hooks that watch with these options.
  const ExportHooks* watched(WatchOptions options) {
    hooks_.watch = &watch_.emplace(std::move(options));
    return &hooks_;
  }

  TestFolder root_;
  Diagnostics diagnostics_;
  std::optional<Watch> watch_;
  ExportHooks hooks_;
};

TEST_F(WatchTest, a_failing_pass_of_onnx_leaves_a_reproducer) {
  OnnxOptions options;
  options.hooks = watched({.repro_dir = folder()});
  Program odd = program(kOddRoot);
  auto lowered = lower_to_onnx(odd, {}, options, diagnostics_);
  expect_replay(lowered ? Status() : fail(lowered.error()), "legalise-for-onnx{opset=22,runtime-ops=0}");
  EXPECT_EQ(watch_->failure_text(),
            "reproducer: " + folder().string() + "/  (argosy replay " + folder().string() + ")");
}

TEST_F(WatchTest, a_failing_pass_of_executorch_leaves_a_reproducer) {
  ExecutorchOptions options;
  options.hooks = watched({.repro_dir = folder()});
  auto lowered = lower_to_executorch(program(kOddRoot), options, {}, diagnostics_);
  expect_replay(lowered ? Status() : fail(lowered.error()), "legalise-for-executorch");
}

TEST_F(WatchTest, a_failing_pass_of_pt2_leaves_a_reproducer) {
  Program foreign = program(kForeign);
  expect_replay(run_export_passes(pt2_pipeline(), foreign, watched({.repro_dir = folder()}), diagnostics_),
                "refuse-foreign-ops");
}

TEST_F(WatchTest, a_reproducer_ends_before_a_pass_that_has_no_name) {
  Program foreign = program(kForeign);
  Pipeline pipeline = pt2_pipeline();
  pipeline.add({"bind-graphs", [](Program&, PassContext&) -> Result<bool> { return false; }});
  expect_replay(run_export_passes(pipeline, foreign, watched({.repro_dir = folder()}), diagnostics_),
                "refuse-foreign-ops");
}

TEST_F(WatchTest, what_users_can_mend_leaves_none_if_only_bugs_are_wanted) {
  Program foreign = program(kForeign);
  EXPECT_FALSE(
      run_export_passes(pt2_pipeline(), foreign, watched({.repro_dir = folder(), .only_bugs = true}), diagnostics_));
  EXPECT_FALSE(std::filesystem::exists(folder()));
  EXPECT_EQ(watch_->failure_text(), "");
}

TEST_F(WatchTest, programs_are_dumped_after_the_passes_that_are_asked_for) {
  Program fine = program(kFine);
  ASSERT_TRUE(run_export_passes(
      pt2_pipeline(), fine,
      watched({.dump_dir = root_ / "dump", .dump_after = {"fix-dims", "compact-ids"}, .verify_each = true}),
      diagnostics_));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root_ / "dump"))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"02_fix-dims.ir", "04_compact-ids.ir"}));
}

TEST_F(WatchTest, every_pass_of_every_backend_has_a_name_of_its_own) {
  std::vector<std::string_view> names;
  for (const NamedPass& pass : every_pass()) names.push_back(pass.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace argosy
