#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/onnx/writer.h"
#include "base/result.h"
#include "driver/backend_options.h"
#include "driver/bundle_companions.h"
#include "driver/export.h"
#include "driver/onnx/adapters_apart.h"
#include "driver/onnx/own_engine.h"
#include "engines/device.h"
#include "engines/engine.h"

namespace argosy {

/// Graphs that share one data file, and the folder of the bundle that they are in.
struct OnnxPart {
  std::filesystem::path folder;
  onnx::Bundle bundle;
  std::vector<std::string> components;  // for each graph
};

/// An export for ONNX Runtime: of one variant, or the first of several in one bundle, which then has the others.
class OnnxExport final : public Export {
 public:
  OnnxExport(std::string name, ExportDestination destination, const Checkpoint* checkpoint, JsonDocument capture)
      : Export(std::move(destination), checkpoint, capture.root()),
        name_(std::move(name)),
        manifest_(std::move(capture)) {}

  /// Its files are those of a folder that an earlier export wrote.
  void keep(std::filesystem::path folder) { kept_ = std::move(folder); }

  Status build(Program program, const OnnxOptions& options, const ExportInput& input, Diagnostics& diagnostics);

  /// The last step: takes the other variants of the bundle, which were built as this one, and lists all files.
  Status complete(std::vector<std::unique_ptr<OnnxExport>> further, Diagnostics& diagnostics);

  /// What is stored in few bits, and what computes in f16.
  std::vector<std::string> summary() const override;

  Status write_into(const std::filesystem::path& folder, const ExportWriteOptions& options,
                    const std::function<void(uint64_t)>& progress) const override;
  Status rewrite_checks(const std::filesystem::path& folder, const ExportWriteOptions& options) const override;

  /// The two halves of write_into(), for exports whose weights are written together. The first puts what is kept into
  /// `folder`, and returns what write_parts() is to write, each with its whole path.
  Result<std::vector<OnnxPart>> begin_writing(const std::filesystem::path& folder,
                                              const ExportWriteOptions& options) const;
  /// The second writes what lies beside graphs and weights, and warns.
  Status finish_writing(const std::filesystem::path& folder, const ExportWriteOptions& options,
                        const std::vector<onnx::Overflow>& overflows) const;

 private:
  /// This one, then the others of the bundle.
  std::vector<const OnnxExport*> variants() const;

  /// Puts all variants where the options of this one are.
  void name_variants(std::vector<std::string>& options) const;

  /// Refuses files that this export would not write so. `whole` is the bundle that has them now.
  Status check_kept(const OnnxExport& whole) const;

  /// Which graphs and files there will be.
  Status plan(const Program& program, const OnnxOptions& options, const ExportInput& input);

  /// What is known of the device, for those who use the bundle.
  void note_device(const OnnxOptions& options);

  OnnxOptions with_engine_ops(OnnxOptions options) const;

  /// Graphs of one folder and one data file are a part.
  Status lay_out(std::vector<onnx::NamedModel> graphs, const OnnxOptions& options, const Checkpoint& checkpoint);

  /// The metadata of a graph. Nothing of this machine.
  void describe(OnnxPart& part, const ExportCheck& check) const;

  Status list_files();

  /// Adds those of this variant.
  Status list_graph_files(std::vector<ExportFile>& files);

  /// Weights that are in several data files, as a line.
  std::vector<std::string> twice_written() const;

  std::vector<ManifestGraph> manifest_graphs() const;

  /// Of several variants that were measured; else empty.
  std::string picture(const ExportWriteOptions& options) const;

  std::string bundle_manifest(const ExportWriteOptions& options) const;

  /// Warns of what the engine will fail on: the model's own files may lack something, or contradict each other.
  Status warn_of_findings(const std::filesystem::path& folder, const ExportWriteOptions& options) const;

  std::string name_;       // of the variant, if there are several
  JsonDocument manifest_;  // of the capture
  const engines::Engine* engine_ = nullptr;
  std::shared_ptr<const OwnEngine> own_engine_;  // null: there is none
  const engines::Device* device_ = nullptr;
  std::optional<engines::SourceModel> source_;  // of a folder
  engines::BundlePlan plan_;
  std::vector<OnnxPart> parts_;
  std::vector<engines::WrittenGraph> laid_out_;
  std::vector<std::unique_ptr<OnnxExport>> further_;  // other variants, of the same bundle
  BundleCompanions companions_;
  std::vector<QuantizedWeight> quantized_;
  AdaptersApart adapters_;
  std::filesystem::path kept_;                  // a folder that has them already; empty: they are to be written
  mutable std::vector<std::string> own_files_;  // that the own engine wrote last
  uint64_t graph_bytes_ = 0;                    // of this variant's graphs and weights
};

/// Writes graphs and their weights, each part into its folder, which exists. What they are made of is read once for all
/// of them. Overflows tell their part.
Result<std::vector<onnx::Overflow>> write_parts(const std::vector<OnnxPart>& parts, const ExportWriteOptions& options,
                                                const std::function<void(uint64_t)>& progress);

}  // namespace argosy
