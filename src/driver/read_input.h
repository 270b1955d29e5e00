#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "ir/program.h"
#include "tensor/source.h"

namespace argosy {

struct InputOptions {
  std::filesystem::path schemas;  // of ops, for .pt2 archives; may not exist
  /// Gets every problem where one run can find several; the returned error is the first of them. May be null.
  Diagnostics* diagnostics = nullptr;
};

/// A program, and what of its file only a writer needs.
struct InputProgram {
  Program program;
  std::map<std::string, TensorSourcePtr> sample_inputs;  // by component
};

/// Reads a .pt2 archive, a .capture file or IR text. Verify it before passes run on it (verify_and_run()).
Result<InputProgram> read_input(const std::filesystem::path& path, const InputOptions& options);

}  // namespace argosy
