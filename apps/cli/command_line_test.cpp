#include "command_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace argosy::cli {
namespace {

CommandLine parsed(std::vector<std::string> arguments) {
  int exit_code = -1;
  auto result = parse_command_line(std::move(arguments), exit_code);
  EXPECT_TRUE(result) << exit_code;
  return result.value_or(CommandLine{});
}

int refused(std::vector<std::string> arguments) {
  int exit_code = -1;
  EXPECT_FALSE(parse_command_line(std::move(arguments), exit_code));
  return exit_code;
}

TEST(CommandLineTest, underscores_and_dashes_are_alike) {
  EXPECT_EQ(with_dashes({"opt", "--verify_each", "a_b", "--repro_dir=x_y", "--", "--c_d"}),
            (std::vector<std::string>{"opt", "--verify-each", "a_b", "--repro-dir=x_y", "--", "--c_d"}));
  auto options = std::get<OptOptions>(parsed({"opt", "in_put.ir", "--verify_each"}).command);
  EXPECT_TRUE(options.verify_each);
  EXPECT_EQ(options.input, "in_put.ir");
}

TEST(CommandLineTest, global_flags_stand_before_or_after_the_subcommand) {
  EXPECT_EQ(parsed({"--log-level", "debug", "doctor"}).global.log_level, LogLevel::kDebug);
  EXPECT_EQ(parsed({"doctor", "--progress=json"}).global.progress, ProgressMode::kJson);
}

TEST(CommandLineTest, opt_takes_lists_and_stdin) {
  auto options =
      std::get<OptOptions>(parsed({"opt", "-", "--passes=a,b", "--print-ir-after=a,changed", "-o", "x.ir"}).command);
  EXPECT_EQ(options.input, "-");
  EXPECT_EQ(options.output, "x.ir");
  EXPECT_EQ(options.passes, "a,b");
  EXPECT_EQ(options.print_after, (std::vector<std::string>{"a", "changed"}));
}

TEST(CommandLineTest, opt_golden_takes_several_files) {
  auto options = std::get<OptOptions>(parsed({"opt", "--golden", "a.ir", "b.ir"}).command);
  EXPECT_EQ(options.golden, (std::vector<std::string>{"a.ir", "b.ir"}));
}

TEST(CommandLineTest, export_takes_its_output_in_three_ways) {
  for (std::vector<std::string> last : {std::vector<std::string>{"x.pt2"}, {"-o", "x.pt2"}, {"--output_dir=x.pt2"}}) {
    std::vector<std::string> arguments = {"export", "pt2", "--model", "m", "--memory=256MB", "--check", "off"};
    arguments.insert(arguments.end(), last.begin(), last.end());
    auto options = std::get<ExportOptions>(parsed(arguments).command);
    EXPECT_EQ(options.output, "x.pt2");
    EXPECT_EQ(options.memory_bytes, 256'000'000u);
    EXPECT_EQ(options.check, CheckMode::kOff);
  }
}

TEST(CommandLineTest, rejects_sizes_that_are_none) {
  for (const char* size : {"-5", "0", "-1GB", "lots", ""}) {
    EXPECT_EQ(refused({"export", "onnx", "--model", "m", "--memory", size}), kUsage) << size;
  }
  EXPECT_EQ(refused({"cache", "prune", "--older-than", "-3"}), kUsage);
  EXPECT_EQ(refused({"inspect", "x.pt2", "--top", "-1"}), kUsage);
}

TEST(CommandLineTest, help_and_version_end_with_success) {
  EXPECT_EQ(refused({"--version"}), kDone);
  EXPECT_EQ(refused({"opt", "--help"}), kDone);
}

TEST(CommandLineTest, rejects_what_makes_no_sense_as_usage) {
  EXPECT_EQ(refused({"--nonsense"}), kUsage);
  EXPECT_EQ(refused({"nonsense"}), kUsage);
  EXPECT_EQ(refused({"inspect"}), kUsage);
  EXPECT_EQ(refused({"explain"}), kUsage);
  EXPECT_EQ(refused({"explain", "a", "b"}), kUsage);
  EXPECT_EQ(refused({"opt"}), kUsage);
  EXPECT_EQ(refused({"opt", "x.ir", "--golden", "a.ir"}), kUsage);
  EXPECT_EQ(refused({"opt", "x.ir", "--update-golden"}), kUsage);
  EXPECT_EQ(refused({"inspect", "x", "--top=many"}), kUsage);
  EXPECT_EQ(refused({"doctor", "--log-level=loud"}), kUsage);
  EXPECT_EQ(refused({"export", "--model", "m"}), kUsage);
  EXPECT_EQ(refused({"export", "pt2"}), kUsage);
  EXPECT_EQ(refused({"export", "pt2", "--model", "m", "a", "-o", "b"}), kUsage);
  EXPECT_EQ(refused({"export", "pt2", "--model", "m", "--dtype=int3"}), kUsage);
  EXPECT_EQ(refused({"export", "pt2", "--model", "m", "--memory=much"}), kUsage);
  EXPECT_EQ(refused({"export", "pt2", "--model", "m", "--dtype=fp32,q4"}), kUsage);
  EXPECT_EQ(refused({"export", "onnx", "--model", "m", "--dtype=int3"}), kUsage);
}

TEST(CommandLineTest, dtypes_of_onnx_are_one_or_several_variants) {
  auto given = [](const std::string& text) {
    return std::get<ExportOptions>(parsed({"export", "onnx", "--model", "m", "--dtype", text}).command);
  };
  EXPECT_EQ(given("fp16").dtype, "float16");
  EXPECT_TRUE(given("fp16").variants.empty());
  EXPECT_EQ(given("fp16,q4").variants, (std::vector<std::string>{"fp16", "q4"}));
  EXPECT_EQ(given("q8").variants, std::vector<std::string>{"q8"});
  EXPECT_EQ(given("all").variants.size(), 5U);
  EXPECT_EQ(given("mixed16").variants, std::vector<std::string>{"mixed16"});
}

TEST(CommandLineTest, mixed_float16_is_an_option_of_graphs_too) {
  auto options = std::get<ExportOptions>(
      parsed({"export", "onnx", "--model", "m", "--mixed16", "--calibrate", "a.txt", "--seen-values=b.json"}).command);
  EXPECT_EQ(options.backend_options.onnx.lowering.half, onnx::HalfMode::kMixed);
  EXPECT_EQ(options.calibrate, "a.txt");
  EXPECT_EQ(options.seen_values, "b.json");
}

TEST(CommandLineTest, run_takes_media_one_file_a_flag) {
  auto options = std::get<RunOptions>(
      parsed({"run", "--image", "a.png", "bundle", "--image=b.png", "--prompt", "what is it?", "--raw"}).command);
  EXPECT_EQ(options.bundle, "bundle");
  EXPECT_EQ(options.images, (std::vector<std::string>{"a.png", "b.png"}));
  EXPECT_EQ(options.prompt, "what is it?");
  EXPECT_EQ(options.max_new_tokens, 128);
  EXPECT_TRUE(options.raw);
  EXPECT_EQ(refused({"run", "bundle", "--prompt", ""}), kUsage);
  EXPECT_EQ(refused({"run", "bundle", "--prompt", "a", "--max-new-tokens", "0"}), kUsage);
  EXPECT_EQ(std::get<RunOptions>(parsed({"run", "bundle", "--audio", "a.wav"}).command).audios.size(), 1U);
}

TEST(CommandLineTest, run_reads_its_prompt_where_stdin_is_no_terminal) {
  const int own = dup(STDIN_FILENO), none = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(dup2(none, STDIN_FILENO), 0);
  EXPECT_EQ(std::get<RunOptions>(parsed({"run", "bundle"}).command).prompt, "-");
  EXPECT_EQ(std::get<RunOptions>(parsed({"run", "bundle", "--audio", "a.wav"}).command).prompt, "");
  dup2(own, STDIN_FILENO);
  close(none);
  close(own);
}

TEST(CommandLineTest, run_takes_how_tokens_are_drawn) {
  auto options = std::get<RunOptions>(parsed({"run", "bundle", "--prompt", "a", "--temperature", "0.7", "--top-k=40",
                                              "--top_p", "0.9", "--seed", "7", "--system", "Be brief."})
                                          .command);
  EXPECT_EQ(options.temperature, 0.7);
  EXPECT_EQ(options.top_k, 40);
  EXPECT_EQ(options.top_p, 0.9);
  EXPECT_EQ(options.seed, 7);
  EXPECT_EQ(options.system, "Be brief.");
  EXPECT_EQ(std::get<RunOptions>(parsed({"run", "bundle", "--prompt", "a"}).command).temperature, 0);
  for (const char* wrong : {"--temperature=-1", "--top-k=0", "--top-p=2", "--seed=-1", "--seed=2147483648"})
    EXPECT_EQ(refused({"run", "bundle", "--prompt", "a", wrong}), kUsage) << wrong;
}

TEST(CommandLineTest, push_takes_a_folder_and_a_repository_and_no_token) {
  auto options = std::get<PushOptions>(parsed({"push", "out", "org/name", "--private", "--revision", "q4"}).command);
  EXPECT_EQ(options.folder, "out");
  EXPECT_EQ(options.repository, "org/name");
  EXPECT_EQ(options.revision, "q4");
  EXPECT_TRUE(options.is_private);
  EXPECT_FALSE(options.all_files || options.dry_run);
  EXPECT_EQ(refused({"push", "out"}), kUsage);
  EXPECT_EQ(refused({"push", "out", "org/name", "--token", "secret"}), kUsage);
}

TEST(CommandLineTest, sweep_takes_jobs_limits_and_a_cluster_with_or_without_an_address) {
  auto options = std::get<SweepOptions>(
      parsed({"sweep", "jobs.jsonl", "--memory", "8GB", "--disk=2MB", "--shard", "1/8", "--jobs", "3"}).command);
  EXPECT_EQ(options.jobs_file, "jobs.jsonl");
  EXPECT_EQ(options.memory, int64_t{8'000'000'000});
  EXPECT_EQ(options.disk, uint64_t{2'000'000});
  EXPECT_LT(options.seconds, 0);
  EXPECT_FALSE(options.uses_ray);
  EXPECT_TRUE(std::get<SweepOptions>(parsed({"sweep", "jobs.jsonl", "--ray"}).command).uses_ray);
  EXPECT_EQ(std::get<SweepOptions>(parsed({"sweep", "jobs.jsonl", "--ray", "host:1"}).command).ray, "host:1");
  auto reported = std::get<SweepOptions>(parsed({"sweep", "jobs.jsonl", "--report", "a", "b"}).command).reported;
  EXPECT_EQ(reported, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(refused({"sweep"}), kUsage);
  EXPECT_EQ(refused({"sweep", "jobs.jsonl", "--memory", "-1"}), kUsage);
}

TEST(CommandLineTest, check_takes_a_number_of_tokens) {
  EXPECT_EQ(std::get<CheckOptions>(parsed({"check", "b", "--against", "m", "--tokens", "32"}).command).tokens, 32);
  EXPECT_EQ(refused({"check", "b", "--against", "m", "--tokens", "0"}), kUsage);
}

std::string said(std::vector<std::string> arguments) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(refused(std::move(arguments)), kUsage);
  return testing::internal::GetCapturedStderr();
}

TEST(CommandLineTest, says_what_was_probably_meant) {
  EXPECT_EQ(said({"exprot", "onnx"}),
            "error[invalid-input]: there is no command \"exprot\"\n"
            "  hint: did you mean export? argosy --help lists all\n");
  EXPECT_EQ(said({"export", "onnx", "--modle", "m"}),
            "error[invalid-input]: there is no option \"--modle\"\n"
            "  hint: did you mean --model? argosy export onnx --help lists all\n");
  EXPECT_EQ(said({"export", "tflite", "--model", "m"}),
            "error[invalid-input]: there is no command \"tflite\"\n  hint: argosy export --help lists all\n");
  // Values and paths are no words of the program.
  EXPECT_EQ(said({"inspect", "exprot", "--top", "many"}).find("there is no"), std::string::npos);
}

TEST(CommandLineTest, says_which_values_there_are) {
  EXPECT_EQ(said({"export", "executorch", "--model", "m", "--qlinear", "4bit"}),
            "error[invalid-input]: --qlinear: \"4bit\" is not one of 4w, 8a8w, 8da4w, 8da8w, 8w\n"
            "  hint: see argosy export executorch --help\n");
  EXPECT_NE(said({"export", "onnx", "--model", "m", "--for", "ONNX"}).find("is not one of "), std::string::npos);
}

TEST(CommandLineTest, a_missing_command_lists_those_that_there_are) {
  EXPECT_EQ(
      said({"export"}),
      "error[invalid-input]: argosy export needs a command: onnx, executorch, pt2\n  hint: see argosy export --help\n");
}

TEST(CommandLineTest, help_is_a_command_too) {
  for (std::vector<std::string> arguments : {std::vector<std::string>{}, {"help"}, {"help", "export", "onnx"}}) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(refused(arguments), kDone);
    std::string text = testing::internal::GetCapturedStdout();
    EXPECT_NE(text.find(arguments.size() < 3 ? "Look and try:" : "--opset"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace argosy::cli
