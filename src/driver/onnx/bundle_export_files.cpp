// How exports for ONNX Runtime are written and described; bundle_export.cpp has how they are made.

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/text.h"
#include "driver/onnx/bundle_export.h"
#include "driver/onnx/kept_graphs.h"
#include "driver/quality_picture.h"
#include "engines/card.h"
#include "engines/lint.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOnnxFormat = "argosy-onnx";
constexpr size_t kShownOverflows = 20;

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? Status(fail(system_error("create", folder, error.value()))) : Status();
}

void warn_of(const std::vector<onnx::Overflow>& overflows, const ExportWriteOptions& options) {
  for (size_t i = 0; i < overflows.size() && i < kShownOverflows; ++i) {
    options.on_warning(format("{} of {} are too large for float16 and became infinite",
                              overflows[i].values == 1 ? "1 value" : format("{} values", overflows[i].values),
                              overflows[i].tensor));
  }
  if (overflows.size() > kShownOverflows)
    options.on_warning(format("and so did values of {} more tensors", overflows.size() - kShownOverflows));
}

}  // namespace

Result<std::vector<onnx::Overflow>> write_parts(const std::vector<OnnxPart>& parts, const ExportWriteOptions& options,
                                                const std::function<void(uint64_t)>& progress) {
  std::vector<std::pair<const onnx::Bundle*, fs::path>> bundles;
  for (const OnnxPart& part : parts) bundles.emplace_back(&part.bundle, part.folder);
  TensorWriteOptions stream;
  stream.scratch_bytes = options.scratch_bytes;
  stream.threads = options.threads;
  stream.progress = progress;
  return onnx::write_bundles(bundles, stream);
}

Status OnnxExport::write_into(const fs::path& folder, const ExportWriteOptions& options,
                              const std::function<void(uint64_t)>& progress) const {
  ARGOSY_TRY(std::vector<OnnxPart> parts, begin_writing(folder, options));
  ARGOSY_TRY(std::vector<onnx::Overflow> overflows, write_parts(parts, options, progress));
  return finish_writing(folder, options, overflows);
}

Result<std::vector<OnnxPart>> OnnxExport::begin_writing(const fs::path& folder,
                                                        const ExportWriteOptions& options) const {
  std::vector<OnnxPart> parts;
  const std::vector<const OnnxExport*> all = variants();
  for (size_t i = 0; i < all.size(); ++i) {
    for (OnnxPart part : all[i]->parts_) {  // a copy is cheap: graphs and recipes
      if (!all[i]->kept_.empty()) {
        ARGOSY_TRY_STATUS(keep_graphs(part.bundle, all[i]->kept_ / part.folder, folder / part.folder));
        continue;
      }
      all[i]->describe(part, options.check_of(i));
      part.folder = folder / part.folder;
      ARGOSY_TRY_STATUS(make_folder(part.folder));
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

Status OnnxExport::finish_writing(const fs::path& folder, const ExportWriteOptions& options,
                                  const std::vector<onnx::Overflow>& overflows) const {
  ARGOSY_TRY_STATUS(adapters_.write(folder, options.scratch_bytes));
  if (destination_.is_folder) {
    ARGOSY_TRY_STATUS(write_companions(folder, *source_, plan_, companions_));
    ARGOSY_TRY_STATUS(rewrite_checks(folder, options));
  }
  if (own_engine_) {
    ARGOSY_TRY(own_files_, own_engine_->complete(folder));
    ARGOSY_TRY_STATUS(rewrite_checks(folder, options));  // the manifest lists them
  }
  if (options.on_warning) {
    warn_of(overflows, options);
    if (destination_.is_folder) ARGOSY_TRY_STATUS(warn_of_findings(folder, options));
  }
  return {};
}

Status OnnxExport::rewrite_checks(const fs::path& folder, const ExportWriteOptions& options) const {
  if (!destination_.is_folder) return {};
  std::vector<std::string> notes = limits_;
  std::ranges::copy(summary(), std::back_inserter(notes));
  std::ranges::copy(twice_written(), std::back_inserter(notes));
  engines::BundlePlan whole = plan_;
  for (size_t i = 0; i < further_.size(); ++i) {
    std::ranges::copy(further_[i]->plan_.graphs, std::back_inserter(whole.graphs));
    notes.push_back(format("check of {}: {}", further_[i]->name_, options.check_of(i + 1).text()));
  }
  return write_descriptions(folder, *source_, *engine_, whole, options.check, notes, bundle_manifest(options),
                            picture(options));
}

void OnnxExport::describe(OnnxPart& part, const ExportCheck& check) const {
  for (size_t i = 0; i < part.components.size(); ++i) {
    ManifestOptions about;
    about.format = kOnnxFormat;
    about.component = part.components[i];
    if (device_->name != engines::kUsualDevice) about.device = device_->name;
    about.check = check;
    about.quantized = quantized_;
    part.bundle.set_metadata(i, std::string(kOnnxManifestKey), export_manifest(manifest_.root(), about));
    auto add = [&](std::string_view key, JsonView value) {
      if (auto text = value.as_string()) part.bundle.set_metadata(i, format("argosy.{}", key), std::string(*text));
    };
    part.bundle.set_metadata(i, "argosy.component", part.components[i]);
    JsonView root = manifest_.root();
    for (std::string_view key : {"model_class", "task", "configuration_hash"}) add(key, root.find(key));
    for (std::string_view key : {"torch", "transformers"}) add(key, root.find("versions").find(key));
  }
}

std::vector<std::string> OnnxExport::twice_written() const {
  std::set<std::string> seen;
  uint64_t bytes = 0;
  for (const OnnxExport* variant : variants()) {
    for (const OnnxPart& part : variant->parts_) {
      for (const onnx::Layout::DataFile& file : part.bundle.layout().data_files) {
        for (const onnx::Layout::Tensor& tensor : file.tensors) {
          if (!seen.insert(tensor.source->recipe()).second) bytes += static_cast<uint64_t>(tensor.source->bytes());
        }
      }
    }
  }
  if (bytes == 0) return {};
  return {format("{} of weights are written more than once: the engine wants a data file for each graph",
                 format_bytes(bytes))};
}

std::vector<ManifestGraph> OnnxExport::manifest_graphs() const {
  std::vector<ManifestGraph> graphs;
  for (const engines::GraphPlan& graph : plan_.graphs) {
    ManifestGraph& entry = graphs.emplace_back(graph.file, graph.component);
    for (const Edit& edit : graph.edits) {
      if (const auto* input = std::get_if<RenameInput>(&edit)) entry.renamed.emplace_back(input->from, input->to);
      if (const auto* output = std::get_if<RenameOutput>(&edit)) entry.renamed.emplace_back(output->from, output->to);
    }
  }
  return graphs;
}

std::string OnnxExport::picture(const ExportWriteOptions& options) const {
  std::vector<MeasuredVariant> measured;
  for (size_t i = 0; i <= further_.size(); ++i) {
    const ExportCheck& check = options.check_of(i);
    measured.push_back({variants()[i]->name_, variants()[i]->graph_bytes_, check.kind == "full", check.quality});
  }
  return quality_picture(measured);
}

std::string OnnxExport::bundle_manifest(const ExportWriteOptions& options) const {
  ManifestOptions about;
  about.format = kOnnxFormat;
  about.check = options.check;
  about.quantized = quantized_;
  about.engine = engine_->name;
  if (own_engine_) {
    about.own_engine = own_engine_->name;
    about.own_package = own_engine_->package;
    about.own_version = own_engine_->version;
  }
  about.adapters = adapters_.manifest();
  about.source = source_->name;
  about.commit = source_->commit;
  about.options = source_->options;
  if (device_->name != engines::kUsualDevice) about.device = device_->name;
  about.graphs = manifest_graphs();
  const std::vector<const OnnxExport*> all = variants();
  for (size_t i = 0; all.size() > 1 && i < all.size(); ++i) {
    const OnnxExport& each = *all[i];
    about.variants.push_back({each.name_, each.manifest_graphs(), each.quantized_, options.check_of(i)});
  }
  for (const ExportFile& file : files_) about.files.push_back(file.file);
  about.files.insert(about.files.end(), own_files_.begin(), own_files_.end());
  about.files.emplace_back(engines::kCardFile);
  if (!picture(options).empty()) about.files.emplace_back(kPictureFile);
  return export_manifest(manifest_.root(), about);
}

Status OnnxExport::warn_of_findings(const fs::path& folder, const ExportWriteOptions& options) const {
  ARGOSY_TRY(engines::LintReport report, engines::lint(folder, engine_->name));
  if (own_engine_) {
    ARGOSY_TRY(std::vector<engines::Finding> own, own_engine_->lint(folder));
    std::ranges::copy(own, std::back_inserter(report.findings));
  }
  for (const engines::Finding& finding : report.findings)
    options.on_warning(format("{}{}; {}", finding.file.empty() ? "" : finding.file + ": ", finding.what, finding.hint));
  return {};
}

}  // namespace argosy
