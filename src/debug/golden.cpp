#include "debug/golden.h"

#include "base/text.h"
#include "debug/named_passes.h"
#include "debug/text_diff.h"
#include "ir/text.h"
#include "passes/run_passes.h"

namespace argosy {
namespace {

constexpr std::string_view kPasses = "# passes:";
constexpr std::string_view kExpect = "# ---- expect";
constexpr std::string_view kExpectError = "# ---- expect error";

std::string_view take_line(std::string_view& text) {
  size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string without_spaces(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c != ' ' && c != '\t' && c != '\r') result += c;
  }
  return result;
}

Result<std::string> run_passes(const GoldenFile& golden) {
  ARGOSY_TRY(Pipeline pipeline, parse_pipeline(golden.passes, every_pass()));
  ARGOSY_TRY(Program program, parse(golden.input));
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  PipelineHooks hooks;
  hooks.verify_each = true;
  ARGOSY_TRY([[maybe_unused]] bool has_changed, verify_and_run(pipeline, program, context, hooks));
  return print(program);
}

}  // namespace

Result<GoldenFile> parse_golden(std::string_view text, std::string_view name) {
  GoldenFile golden;
  bool has_passes = false;
  while (text.starts_with('#') && !text.starts_with(kExpect)) {
    std::string_view line = take_line(text);
    golden.header.append(line).append("\n");
    if (!line.starts_with(kPasses)) continue;
    if (has_passes) return fail(ErrorCode::kInvalidInput, format("{} has two lines \"# passes:\"", name));
    has_passes = true;
    golden.passes = without_spaces(line.substr(kPasses.size()));
  }
  if (!has_passes) {
    return fail(ErrorCode::kInvalidInput, format("{} has no line \"# passes:\" before its program", name),
                "begin the file with \"# passes: <names separated by commas>\"");
  }
  bool has_expectation = false;
  while (!text.empty() && !has_expectation) {
    std::string_view line = take_line(text);
    if (line == kExpect || line == kExpectError) {
      has_expectation = true;
      golden.expects_error = line == kExpectError;
    } else {
      golden.input.append(line).append("\n");
    }
  }
  if (!has_expectation) {
    return fail(ErrorCode::kInvalidInput, format("{} has no line \"{}\"", name, kExpect),
                "add that line after the program, then run tools/update_goldens.py");
  }
  golden.expected = text;
  return golden;
}

GoldenOutcome run_golden(const GoldenFile& golden) {
  Result<std::string> result = run_passes(golden);
  if (!result) return {true, to_text(result.error())};
  return {false, *std::move(result)};
}

std::string with_outcome(const GoldenFile& golden, const GoldenOutcome& outcome) {
  return format("{}{}{}\n{}", golden.header, golden.input, outcome.is_error ? kExpectError : kExpect, outcome.text);
}

std::string golden_difference(const GoldenFile& golden, const GoldenOutcome& outcome, std::string_view name) {
  auto as_text = [](bool is_error, std::string_view text) {
    return format("{}\n{}", is_error ? kExpectError : kExpect, text);
  };
  return unified_diff(as_text(golden.expects_error, golden.expected), as_text(outcome.is_error, outcome.text),
                      format("{} (expected)", name), format("{} (actual)", name));
}

}  // namespace argosy
