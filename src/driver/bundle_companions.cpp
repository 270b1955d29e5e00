#include "driver/bundle_companions.h"

#include <algorithm>

#include "argosy/version.h"
#include "base/text.h"
#include "driver/quality_picture.h"
#include "engines/card.h"
#include "engines/companions.h"
#include "engines/rewrite_json.h"
#include "io/file.h"
#include "io/inside_folder.h"
#include "io/write_file.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig = "config.json";
constexpr uint64_t kMaxCompanion = uint64_t{256} << 20;

/// Writes a text file; its folder is made if it does not exist.
Status write_bundle_text(const fs::path& path, const std::string& text, Overwrite overwrite = Overwrite::kRefuse) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return fail(system_error("create", path.parent_path(), error.value()));
  return write_file(path, text, overwrite);
}

}  // namespace

Result<BundleCompanions> list_companions(const engines::SourceModel& model, engines::BundlePlan& plan) {
  BundleCompanions companions;
  auto has_text = [&](std::string_view file) {
    return std::ranges::any_of(plan.files, [&](const auto& text) { return text.name == file; });
  };
  if (model.is_config_changed && std::ranges::find(plan.copied, kConfig) != plan.copied.end() && !has_text(kConfig))
    plan.files.push_back({std::string(kConfig), engines::rewritten(model.config->root(), {})});
  for (const engines::TextFile& file : plan.files) companions.files.push_back({file.name, {}, file.text.size()});
  for (const std::string& file : plan.copied) {
    // A text of the plan takes the place of the model's own.
    if (has_text(file)) continue;
    std::error_code error;
    uint64_t bytes = fs::file_size(model.folder / file, error);
    if (error) return fail(system_error("examine", model.folder / file, error.value()));
    companions.copied.push_back(file);
    companions.files.push_back({file, {}, bytes});
  }
  for (const std::string& file : engines::left_out_companions(model)) {
    companions.notes.push_back(
        format("{} is left out: it is a link that leads out of the model's folder; put the file itself there", file));
  }
  return companions;
}

Status write_companions(const fs::path& folder, const engines::SourceModel& model, const engines::BundlePlan& plan,
                        const BundleCompanions& companions) {
  for (const engines::TextFile& file : plan.files) ARGOSY_TRY_STATUS(write_bundle_text(folder / file.name, file.text));
  for (const std::string& file : companions.copied) {
    ARGOSY_TRY_STATUS(check_inside_folder(model.folder / file, model.folder));
    // Read as text of any content: these files are small.
    ARGOSY_TRY(std::string text, read_text_file(model.folder / file, kMaxCompanion));
    ARGOSY_TRY_STATUS(write_bundle_text(folder / file, text));
  }
  return {};
}

Status write_descriptions(const fs::path& folder, const engines::SourceModel& model, const engines::Engine& engine,
                          const engines::BundlePlan& plan, const ExportCheck& check,
                          const std::vector<std::string>& notes, const std::string& manifest,
                          const std::string& picture) {
  engines::CardFacts facts{std::string(version()), check.text(), notes};
  if (!picture.empty()) {
    facts.picture = kPictureFile;
    ARGOSY_TRY_STATUS(write_bundle_text(folder / kPictureFile, picture, Overwrite::kReplace));
  }
  ARGOSY_TRY(std::string card, engines::model_card(model, engine, plan, facts));
  ARGOSY_TRY_STATUS(write_bundle_text(folder / engines::kCardFile, card, Overwrite::kReplace));
  return write_bundle_text(folder / kBundleManifest, manifest, Overwrite::kReplace);
}

}  // namespace argosy
