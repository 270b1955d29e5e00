#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "driver/backend_options.h"
#include "driver/export.h"

namespace argosy {

/// One of several ways in which an export stores a model (variants.h).
struct ExportVariant {
  std::string name;
  ExportInput input;
  BackendOptions options;
  bool is_kept = false;  // the destination has it already: its files stay as they are
};

/// A format that programs are exported to. Another one is another row.
struct Backend {
  std::string_view name;    // "onnx": as commands and the check call it
  std::string_view suffix;  // of its files
  /// What is captured if no dtype is asked for and the configuration's is bfloat16; "auto": bfloat16.
  std::string_view dtype_for_bfloat16;
  Result<std::unique_ptr<Export>> (*prepare)(const ExportInput& input, const ExportDestination& destination,
                                             const BackendOptions& options, Diagnostics& diagnostics);
  /// All options that change the files and are not the defaults, as arguments of a command line: the check exports its
  /// twin with them, and a passed check is remembered for them.
  std::vector<std::string> (*graph_arguments)(const BackendOptions& options);
  /// Whether sizes that users ask for are bounds of the lowering (ExecutorchOptions::shape), not of the capture.
  bool bounds_dims = false;
  /// Several variants of one model in one folder; null: the backend has none.
  Result<std::unique_ptr<Export>> (*prepare_variants)(std::vector<ExportVariant> variants,
                                                      const ExportDestination& destination,
                                                      Diagnostics& diagnostics) = nullptr;
};

std::span<const Backend> all_backends();
/// Null if there is none of that name.
const Backend* find_backend(std::string_view name);

/// The dtype to capture a model in: the one that is asked for, else what suits the backend.
Result<std::string> export_dtype(const Backend& backend, const std::filesystem::path& model, const std::string& asked);

}  // namespace argosy
