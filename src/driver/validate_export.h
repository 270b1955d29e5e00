#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "driver/backends.h"

namespace argosy {

/// What is known of an export before its capture is made.
struct ExportRequest {
  const Backend* backend = nullptr;
  const BackendOptions* options = nullptr;
  const ExportDestination* destination = nullptr;
  const Checkpoint* checkpoint = nullptr;
  std::filesystem::path model;
  std::string dtype;              // to capture; "auto": the configuration's
  std::string shape;              // that dims are captured with; backends that bound dims have theirs in the options
  bool prefill = false;           // a graph for prompts is asked for
  std::filesystem::path capture;  // given by the user; empty: from the cache, or newly made
  size_t variants = 1;            // that go to the destination; this is one of them
};

/// A component that a capture will have, and the names of its dims that vary.
struct ComponentDims {
  std::string name;
  std::vector<std::string> dims;
};

/// Before work that takes time: refuses what is wrong by flags, configuration, the model's folder and the
/// checkpoint's headers alone. `notes` gets remarks that are no errors, a line each. Reads files of the model's
/// folder, no weights.
Status validate_export(const ExportRequest& request, std::vector<std::string>& notes);

/// The same by the components, which are known before they are traced.
Status validate_components(const ExportRequest& request, std::span<const ComponentDims> components);

/// Whether so many components can become one .onnx file.
Status check_one_model(const ExportDestination& destination, const OnnxOptions& options, size_t components);

/// What to do about a file that an engine needs and the model's folder lacks.
std::string missing_file_hint(std::string_view file);

}  // namespace argosy
