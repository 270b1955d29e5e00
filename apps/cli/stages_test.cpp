#include "stages.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "export_summary.h"
#include "python_failure.h"
#include "terminal.h"

namespace argosy::cli {
namespace {

namespace fs = std::filesystem;

fs::path empty_folder(const std::string& name) {
  fs::path folder = fs::path(testing::TempDir()) / ("argosy_stages_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

PythonEnd ended(std::initializer_list<const char*> lines) {
  PythonEnd end{"python", "argosy.capture", 1, {}};
  for (const char* line : lines) end.take(line);
  return end;
}

TEST(StageTimesTest, remembers_the_last_time_of_a_model_and_of_any) {
  StageTimes times(empty_folder("times"));
  EXPECT_EQ(times.expected("capture", "Llama"), "");
  times.remember("capture", "Llama", 28.4);
  times.remember("capture", "Bert", 3.2);
  EXPECT_EQ(times.expected("capture", "Llama"), "about 30 s");
  EXPECT_EQ(times.expected("capture", "Vit"), "the last one took 4 s");
  EXPECT_EQ(times.expected("check onnx", "Llama"), "");
  times.remember("capture", "Llama", 301);
  EXPECT_EQ(times.expected("capture", "Llama"), "about 6 min");
}

TEST(StageTimesTest, knows_nothing_by_a_file_that_is_none_and_fails_nowhere) {
  fs::path folder = empty_folder("damaged");
  std::ofstream(folder / "times.txt") << "nonsense\n-4 capture Llama\n1e99 capture Llama\n7\n\n";
  EXPECT_EQ(StageTimes(folder).expected("capture", "Llama"), "");
  StageTimes(folder / "absent").remember("capture", "Llama", 1);
}

TEST(StageTimesTest, names_the_model_by_its_configuration) {
  fs::path folder = empty_folder("model");
  CaptureRequest request;
  request.model = folder;
  EXPECT_EQ(model_in_words(request), "the model");
  std::ofstream(folder / "config.json") << R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"]})";
  EXPECT_EQ(model_in_words(request), "LlamaForCausalLM");
  request.task = "text-classification";
  EXPECT_EQ(model_in_words(request), "llama for text-classification");
}

TEST(PythonFailureTest, a_missing_package_is_told_with_how_to_install_it) {
  Environment environment;
  Error error = python_failure(ended({"Traceback", "ModuleNotFoundError: No module named 'torch.fx'; 'torch' is none"}),
                               "no capture was made", "this needs torch", ErrorCode::kInvalidInput, environment);
  EXPECT_EQ(error.message, "this needs torch, and python has no torch");
  EXPECT_EQ(error.hint, "pip install 'argosy[torch]', or name another Python by ARGOSY_PYTHON");
  EXPECT_EQ(how_to_install("einops"), "pip install einops");
}

TEST(PythonFailureTest, says_the_error_of_the_module_or_its_last_line) {
  Environment environment;
  environment.cache = empty_folder("logs");
  PythonEnd own = ended({"a", "error[not-found]: no layer 7", "  hint: count them", "b"});
  Error error = python_failure(own, "no capture was made", "", ErrorCode::kInvalidInput, environment);
  EXPECT_EQ(error.message, "no capture was made: no layer 7");
  EXPECT_TRUE(error.hint.starts_with("count them; all that Python said is in ")) << error.hint;
  EXPECT_TRUE(fs::exists(environment.cache / "logs" / "argosy.capture.log"));
  EXPECT_EQ(ended({"Traceback", "ValueError: 3"}).last_words(), "ValueError: 3");
  EXPECT_EQ(ended({}).last_words(), "python -m argosy.capture ended with 1");
  environment.cache = environment.cache / "logs" / "argosy.capture.log";  // no folder
  EXPECT_EQ(keep_log(ended({"x"}), environment), "Python's last lines are:\n    x");
}

TEST(TerminalTest, stages_are_plain_lines_where_there_is_no_terminal) {
  testing::internal::CaptureStderr();
  {
    Terminal terminal({});
    terminal.expect_stages(3);
    terminal.begin_stage("Tracing A");
    terminal.end_stage();
    terminal.begin_stage("Verifying");
    terminal.log(LogLevel::kWarn, "slow");
    terminal.end_stage("it passed before");
    terminal.begin_stage("Writing");
    terminal.print_error(Error{ErrorCode::kIo, "disk full", "make room"});
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[1/3] Tracing A… 0.0 s\n[2/3] Verifying…\nargosy: warning: slow\n[2/3] Verifying… it passed before\n"
            "[3/3] Writing… failed after 0.0 s\nerror[io]: disk full\n  hint: make room\n");
}

TEST(TerminalTest, warnings_of_one_kind_are_one) {
  testing::internal::CaptureStderr();
  {
    Terminal terminal({});
    for (int layer : {0, 1, 2, 1})
      terminal.log(LogLevel::kWarn, format("layers.{}.weight stays as it is: rows of {} are short", layer, layer + 7));
    terminal.log(LogLevel::kWarn, "\"a b\" is damaged and not used");
    terminal.log(LogLevel::kWarn, "rows are short");
    terminal.log(LogLevel::kWarn, "a.onnx: \"x (4)\", \"y (4)\" are fixed");
    terminal.log(LogLevel::kWarn, "b.onnx: \"x (4)\" are fixed");
    terminal.log(LogLevel::kWarn, "\"c\" is damaged and not used");
    terminal.begin_stage("Writing");
    terminal.end_stage("done");
    terminal.log(LogLevel::kWarn, "\"d\" is damaged and not used");
  }
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "argosy: warning: layers.0.weight stays as it is: rows of 7 are short (and 2 more like it; --log-level info "
      "shows them)\n"
      "argosy: warning: \"a b\" is damaged and not used (and 1 more like it; --log-level info shows them)\n"
      "argosy: warning: rows are short\n"
      "argosy: warning: a.onnx: \"x (4)\", \"y (4)\" are fixed (and 1 more like it; --log-level info shows them)\n"
      "Writing… done\n"
      "argosy: warning: \"d\" is damaged and not used\n");
}

TEST(TerminalTest, who_asks_for_more_gets_each_warning) {
  testing::internal::CaptureStderr();
  Terminal terminal({LogLevel::kInfo});
  for (int layer : {0, 1}) terminal.log(LogLevel::kWarn, format("layer {} is short", layer));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "argosy: warning: layer 0 is short\nargosy: warning: layer 1 is short\n");
}

TEST(TerminalTest, stages_are_not_mixed_into_json) {
  testing::internal::CaptureStderr();
  Terminal terminal({LogLevel::kWarn, ProgressMode::kJson});
  terminal.begin_stage("Tracing A");
  terminal.end_stage();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ExportSummaryTest, says_how_it_was_verified) {
  ExportCheck twin{"twin", "", "agrees"}, full{"full", "", "agrees"}, none{"none", "no torch", ""};
  EXPECT_EQ(verified_in_words({twin, twin}), "Verified on a small random-weight copy.");
  EXPECT_EQ(verified_in_words({full}), "Verified with the model's own weights.");
  EXPECT_EQ(verified_in_words({none}), "Not verified: no torch.");
  EXPECT_EQ(verified_in_words({full, twin}), "Verified, as said above.");
  EXPECT_EQ(verified_in_words({none, twin}), "Not all of it is verified, see above.");
}

}  // namespace
}  // namespace argosy::cli
