#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backends/onnx/writer.h"
#include "base/result.h"
#include "border/edit.h"
#include "driver/export.h"
#include "driver/export_manifest.h"
#include "engines/engine.h"
#include "io/onnx/adapter_file.h"

namespace argosy {

/// LoRA adapters that a weight plan keeps apart from the model's weights. Graphs get inputs for their matrices, which
/// are zeros unless callers give others; each adapter becomes a file NAME.onnx_adapter that an engine feeds them from.
class AdaptersApart {
 public:
  /// Those of the plan; none without one.
  static Result<AdaptersApart> find(const ExportInput& input);

  bool are_any() const { return !adapters_.empty(); }
  /// Fails if there are any and the engine has no use for them.
  Status check(const engines::Engine& engine, const engines::BundlePlan& plan, bool is_folder) const;
  /// Adds the inputs to a graph, as the last of its edits.
  void add_edit(std::vector<Edit>& edits) const;
  /// Gives the inputs of the lowered graph their zeros, and lays out the files in the dtypes that it takes.
  Status complete(onnx::Model& model);

  std::vector<ManifestAdapter> manifest() const;
  /// For people, a line each.
  std::vector<std::string> summary() const;
  void list_files(std::vector<ExportFile>& files) const;
  Status write(const std::filesystem::path& folder, size_t scratch_bytes) const;

 private:
  struct Adapter {
    std::string name;
    std::vector<NamedSource> tensors;  // by the inputs that they are for
    AdapterLayout layout = {};
    std::string file() const { return name + std::string(kAdapterSuffix); }
  };
  std::vector<Adapter> adapters_;  // sorted by name
};

}  // namespace argosy
