#pragma once

#include <filesystem>

#include "backends/onnx/writer.h"
#include "base/result.h"
#include "driver/export_manifest.h"

namespace argosy {

/// The check that a graph of an earlier export says of itself.
Result<ExportCheck> check_in_graph(const std::filesystem::path& file);

/// Fails, with the file's name, unless a folder has what `bundle` would write: graphs byte for byte, data files by
/// their sizes and the beginning of every tensor.
Status check_kept_graphs(const onnx::Bundle& bundle, const std::filesystem::path& folder);

/// Puts the files of a bundle that `from` has into `to`, as they are.
Status keep_graphs(const onnx::Bundle& bundle, const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace argosy
