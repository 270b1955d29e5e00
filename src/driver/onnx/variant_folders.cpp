#include "driver/onnx/variant_folders.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "driver/earlier_bundle.h"
#include "driver/export_manifest.h"
#include "driver/quality_picture.h"
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
        if (each.is_kept) file.linked_bytes += std::exchange(file.bytes, 0);
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
    std::vector<OnnxPart> parts;
    std::vector<size_t> owners;  // for each part
    for (size_t i = 0; i < folders_.size(); ++i) {
      const VariantFolder& each = folders_[i];
      if (each.is_kept) {
        ARGOSY_TRY_STATUS(keep_folder(destination_.path / each.name, folder / each.name));
        continue;
      }
      ARGOSY_TRY(std::vector<OnnxPart> own, each.bundle->begin_writing(folder / each.name, options_of(i, options)));
      owners.resize(owners.size() + own.size(), i);
      std::ranges::move(own, std::back_inserter(parts));
    }
    ARGOSY_TRY(std::vector<onnx::Overflow> overflows, write_parts(parts, options, progress));
    for (size_t i = 0; i < folders_.size(); ++i) {
      const VariantFolder& each = folders_[i];
      if (each.is_kept) continue;
      std::vector<onnx::Overflow> own;
      std::ranges::copy_if(overflows, std::back_inserter(own),
                           [&](const onnx::Overflow& overflow) { return owners[overflow.bundle] == i; });
      ARGOSY_TRY_STATUS(each.bundle->finish_writing(folder / each.name, options_of(i, options), own));
    }
    return describe(folder, options);
  }

  Status rewrite_checks(const fs::path& folder, const ExportWriteOptions& options) const override {
    for (size_t i = 0; i < folders_.size(); ++i) {
      if (folders_[i].is_kept) continue;
      ARGOSY_TRY_STATUS(folders_[i].bundle->rewrite_checks(folder / folders_[i].name, options_of(i, options)));
    }
    return describe(folder, options);
  }

 private:
  /// The picture of all, if they were measured, and the manifest that lists everything.
  Status describe(const fs::path& folder, const ExportWriteOptions& options) const {
    std::vector<MeasuredVariant> measured;
    std::vector<std::string> names, files;
    for (const ExportFile& file : files_) files.push_back(file.file);
    for (size_t i = 0; i < folders_.size(); ++i) {
      const VariantFolder& each = folders_[i];
      const ExportCheck& check = options.check_of(i);
      uint64_t bytes = 0;  // whether they are written or were there
      for (const ExportFile& file : each.bundle->files()) bytes += file.bytes + file.linked_bytes;
      measured.push_back({each.name, bytes, check.kind == "full", check.quality});
      names.push_back(each.name);
      files.push_back(each.name + "/" + std::string(engines::kCardFile));
      files.push_back(each.name + "/" + std::string(kBundleManifest));
    }
    if (std::string picture = quality_picture(measured); !picture.empty()) {
      ARGOSY_TRY_STATUS(write_file(folder / kPictureFile, picture, Overwrite::kReplace));
      files.emplace_back(kPictureFile);
    }
    return write_file(folder / kBundleManifest, folders_manifest(names, files), Overwrite::kReplace);
  }

  static Status keep_folder(const fs::path& from, const fs::path& to) {
    ARGOSY_TRY(FolderContents contents, folder_contents(from));
    for (const auto& [name, entry] : contents.entries) {
      if (!entry.is_folder) ARGOSY_TRY_STATUS(keep_file(from / name, to / name));
    }
    return {};
  }

  /// Those of one variant, whose warnings say which it is.
  ExportWriteOptions options_of(size_t variant, ExportWriteOptions options) const {
    options.check = ExportCheck(options.check_of(variant));
    options.further_checks.clear();
    if (options.on_warning) {
      options.on_warning = [warn = std::move(options.on_warning), name = folders_[variant].name](
                               const std::string& text) { warn(format("{}: {}", name, text)); };
    }
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
