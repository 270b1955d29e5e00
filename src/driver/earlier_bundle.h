#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "driver/export_manifest.h"
#include "io/json.h"

namespace argosy {

/// A variant that an earlier export wrote, and how it was checked.
struct EarlierVariant {
  std::string name;  // of driver/variants.h
  ExportCheck check;
};

/// The variants of a folder that argosy export onnx wrote for this engine, in their order; at least one. An error that
/// says why for any other folder, and for one that no variant can be added to.
Result<std::vector<EarlierVariant>> read_earlier_variants(const std::filesystem::path& folder, std::string_view engine);

/// The manifest in a folder of an export.
Result<JsonDocument> read_bundle_manifest(const std::filesystem::path& folder);

/// A check as a manifest has it.
ExportCheck read_check(JsonView manifest);

/// Fails, and names the first difference, unless both manifests are of bundles of the same model, made in the same way
/// for the same engine. Which variants they have and how these were checked does not count. `folder` has the first.
Status check_same_making(JsonView earlier, JsonView made, const std::filesystem::path& folder);

/// Puts a file of an earlier export into another folder as well: the same file where the file system has links, else a
/// copy with its time. The folder is made if it does not exist.
Status keep_file(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace argosy
