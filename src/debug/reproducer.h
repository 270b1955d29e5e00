#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/program.h"

namespace argosy {

/// What reruns a failing pass without the model: a folder of
///   program.ir    the program as it was before the pass that failed, without the bytes of weights
///   replay.json   the passes from there on, options, the version that wrote it
///   error.txt     what the user saw
struct Reproducer {
  Program program;
  std::vector<std::string> passes;  // the failing one first
  bool verify_each = false;
  std::string version;  // of argosy that wrote it
  std::string error;    // as to_text() gave it
};

/// Writes the folder, whole or not at all. An older reproducer of that name is replaced; any other folder or file is
/// left alone and an error.
Status write_reproducer(const std::filesystem::path& folder, const Program& before, std::span<const std::string> passes,
                        bool verify_each, const Error& error);

/// Reads a folder that write_reproducer() wrote.
Result<Reproducer> read_reproducer(const std::filesystem::path& folder);

/// Runs it. Success: the error is gone. A program that an earlier pass had broken fails when it is verified, before its
/// first pass.
Status replay(Reproducer& reproducer);

}  // namespace argosy
