#include "driver/variant_folders.h"

#include <system_error>
#include <utility>

#include "base/text.h"
#include "driver/export_manifest.h"
#include "engines/card.h"
#include "io/write_file.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

class VariantFolders final : public Export {
 public:
  VariantFolders(std::vector<VariantFolder> folders, ExportDestination destination, const Checkpoint* checkpoint,
                 JsonView capture)
      : Export(std::move(destination), checkpoint, capture), folders_(std::move(folders)) {
    fixed_dims_ = folders_[0].bundle->fixed_dims();
    for (const VariantFolder& each : folders_) {
      for (ExportFile file : each.bundle->files()) {
        file.file = each.name + "/" + file.file;
        files_.push_back(std::move(file));
      }
    }
  }

  std::vector<std::string> summary() const override {
    std::vector<std::string> lines;
    for (const VariantFolder& each : folders_) {
      for (const std::string& line : each.bundle->summary()) lines.push_back(format("{}: {}", each.name, line));
    }
    return lines;
  }

  Status write_into(const fs::path& folder, const ExportWriteOptions& options,
                    const std::function<void(uint64_t)>& progress) const override {
    uint64_t done = 0;
    std::vector<std::string> names, files;
    for (size_t i = 0; i < folders_.size(); ++i) {
      const VariantFolder& each = folders_[i];
      std::error_code error;
      fs::create_directories(folder / each.name, error);
      if (error) return fail(system_error("create", folder / each.name, error.value()));
      std::function<void(uint64_t)> own_progress;
      if (progress) own_progress = [&](uint64_t bytes) { progress(done + bytes); };
      ARGOSY_TRY_STATUS(each.bundle->write_into(folder / each.name, options_of(i, options), own_progress));
      done += each.bundle->total_bytes();
      names.push_back(each.name);
    }
    for (const ExportFile& file : files_) files.push_back(file.file);
    for (const std::string& name : names) {
      files.push_back(name + "/" + std::string(engines::kCardFile));
      files.push_back(name + "/" + std::string(kBundleManifest));
    }
    return write_file(folder / kBundleManifest, folders_manifest(names, files), Overwrite::kRefuse);
  }

  Status rewrite_checks(const fs::path& folder, const ExportWriteOptions& options) const override {
    for (size_t i = 0; i < folders_.size(); ++i)
      ARGOSY_TRY_STATUS(folders_[i].bundle->rewrite_checks(folder / folders_[i].name, options_of(i, options)));
    return {};
  }

 private:
  static ExportWriteOptions options_of(size_t variant, ExportWriteOptions options) {
    options.check = ExportCheck(options.check_of(variant));
    options.further_checks.clear();
    return options;
  }

  std::vector<VariantFolder> folders_;
};

}  // namespace

std::unique_ptr<Export> variant_folders(std::vector<VariantFolder> folders, const ExportDestination& destination,
                                        const Checkpoint* checkpoint, JsonView capture) {
  return std::make_unique<VariantFolders>(std::move(folders), destination, checkpoint, capture);
}

}  // namespace argosy
