#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/export.h"
#include "engines/engine.h"

namespace argosy {

/// Files of a bundle beside its programs: texts of the engine's plan, and files of the model's folder.
struct BundleCompanions {
  std::vector<ExportFile> files;
  std::vector<std::string> copied;  // of the model's folder
  std::vector<std::string> notes;   // what is left out and why, a line each
};

/// Files that are links out of the model's folder are left out, with a note. A configuration that is not the file's any
/// more becomes a text of the plan.
Result<BundleCompanions> list_companions(const engines::SourceModel& model, engines::BundlePlan& plan);

/// Writes them.
Status write_companions(const std::filesystem::path& folder, const engines::SourceModel& model,
                        const engines::BundlePlan& plan, const BundleCompanions& companions);

/// Writes the model card and the manifest, which may be there. `notes` are for the card, a line each; so is a `picture`
/// (quality_picture.h), which is written beside it unless it is empty.
Status write_descriptions(const std::filesystem::path& folder, const engines::SourceModel& model,
                          const engines::Engine& engine, const engines::BundlePlan& plan, const ExportCheck& check,
                          const std::vector<std::string>& notes, const std::string& manifest,
                          const std::string& picture = {});

}  // namespace argosy
