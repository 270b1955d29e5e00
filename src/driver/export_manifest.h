#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/json.h"

namespace argosy {

/// The name of the manifest among an archive's extra files, where torch.export.load hands it out.
inline constexpr std::string_view kExportManifest = "argosy.json";

/// Whether the export was compared with the model that it is of.
struct ExportCheck {
  std::string kind = "none";  // twin, full, off (not asked for), none (could not be done)
  std::string why;            // of off and none
};

/// capture.json of a capture.
Result<JsonDocument> read_capture_manifest(const std::filesystem::path& capture);

/// What an archive says of itself: versions, class and task of the model, its components with their dims and how they
/// feed each other. `component` is the one that the archive holds; empty: all of them.
std::string export_manifest(JsonView capture, std::string_view component, const ExportCheck& check);

}  // namespace argosy
