#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/export_destination.h"
#include "driver/export_manifest.h"
#include "driver/progress.h"
#include "frontends/capture/weight_plan.h"
#include "io/checkpoint.h"

namespace argosy {

struct ExportInput {
  std::filesystem::path capture;
  const WeightPlan* plan = nullptr;        // not null
  const Checkpoint* checkpoint = nullptr;  // not null; must outlive the export
};

struct ExportWriteOptions {
  size_t scratch_bytes = size_t{64} << 20;  // for weights on their way
  int threads = 1;
  ExportCheck check;  // what the manifest says
  ProgressHook progress;
  /// Called when everything is written, before it appears under its name: with the archive, or the folder of archives.
  /// An error leaves nothing behind. May be empty.
  std::function<Status(const std::filesystem::path& written)> before_commit;
};

/// One archive of an export.
struct ExportArchive {
  std::string file;                     // name, without the folder
  std::vector<std::string> components;  // names in the capture; one alone is called "model" inside
  uint64_t bytes = 0;                   // of its contents, close to the size of the file
};

/// A program that torch.export.load reads without transformers, on its way: read, given its weights, lowered, verified
/// and laid out; nothing is written before write().
class Pt2Export {
 public:
  /// Weights that the plan lacks are an error that names them. `diagnostics` gets every problem where there are
  /// several.
  static Result<Pt2Export> prepare(const ExportInput& input, const ExportDestination& destination,
                                   Diagnostics& diagnostics);
  Pt2Export(Pt2Export&&) noexcept;
  Pt2Export& operator=(Pt2Export&&) noexcept;
  ~Pt2Export();

  const std::string& model_class() const;
  const std::vector<ExportArchive>& archives() const;
  uint64_t total_bytes() const;
  /// What callers may expect to vary but the capture fixed, a line each.
  const std::vector<std::string>& fixed_dims() const;
  /// Streams all archives. They appear together, complete, or not at all; an earlier export is replaced.
  Status write(const ExportWriteOptions& options) const;

 private:
  struct Impl;
  explicit Pt2Export(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy
