#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace argosy {

/// A test of passes in one readable file:
///   # what it shows                      leading comment lines, kept as they are
///   # passes: eliminate-dead-code        names separated by commas
///   <a program as IR text>
///   # ---- expect                        or: # ---- expect error
///   <the program afterwards, or the error as users read it>
struct GoldenFile {
  std::string header;  // comment lines before the program, line feeds included
  std::string passes;  // without spaces
  std::string input;
  bool expects_error = false;
  std::string expected;
};

/// `name` is for messages.
Result<GoldenFile> parse_golden(std::string_view text, std::string_view name);

/// What running the passes of a golden file gives.
struct GoldenOutcome {
  bool is_error = false;
  std::string text;  // the program, or the error as users read it
};

/// Parses and verifies the input, runs the passes, verifying after each, and prints. Never fails: an error is an
/// outcome.
GoldenOutcome run_golden(const GoldenFile& golden);

/// The file as it should be for that outcome.
std::string with_outcome(const GoldenFile& golden, const GoldenOutcome& outcome);

/// Empty if the outcome is the expected one, else a unified diff.
std::string golden_difference(const GoldenFile& golden, const GoldenOutcome& outcome, std::string_view name);

}  // namespace argosy
