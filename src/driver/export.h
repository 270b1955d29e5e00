#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/export_destination.h"
#include "driver/export_manifest.h"
#include "driver/progress.h"
#include "frontends/capture/weight_plan.h"
#include "io/checkpoint.h"
#include "io/json.h"
#include "ir/program.h"

namespace argosy {

struct ExportInput {
  std::filesystem::path capture;
  const WeightPlan* plan = nullptr;        // null: weights come by their names
  const Checkpoint* checkpoint = nullptr;  // not null; must outlive the export
  std::filesystem::path model;             // the folder with config.json, tokenizer and the like; empty: there is none
  /// What the user asked for, as a command line has it: a bundle says so. Backends add their own (backends.h).
  std::vector<std::string> options = {};
};

/// The capture's program with its weights, not verified. Weights that the plan lacks are an error that names them.
/// `diagnostics` gets every problem where there are several, and as notes what is left out: tensors of the checkpoint
/// that nothing uses, modules that the folder puts behind the model.
Result<Program> read_export_program(const ExportInput& input, Diagnostics& diagnostics);

struct ExportWriteOptions {
  size_t scratch_bytes = size_t{64} << 20;  // for weights while they are copied
  int threads = 1;
  ExportCheck check;                        // for the manifest
  std::vector<ExportCheck> further_checks;  // of an export with several variants: those behind the first
  ProgressHook progress;
  /// Called when everything is written, before it appears under its name: with the file, or the folder. An error leaves
  /// nothing behind. What it returns takes the place of the checks above, if it is not empty. May be empty.
  std::function<Result<std::vector<ExportCheck>>(const std::filesystem::path& written)> before_commit;
  /// Called with remarks that are no errors, a line each. May be empty.
  std::function<void(const std::string& text)> on_warning;

  /// The check of the first variant, or of a further one.
  const ExportCheck& check_of(size_t variant) const {
    return variant == 0 || variant > further_checks.size() ? check : further_checks[variant - 1];
  }
};

/// One file of an export.
struct ExportFile {
  std::string file;                     // name in the folder of the export
  std::vector<std::string> components;  // names in the capture; none: data of others
  uint64_t bytes = 0;                   // that are written, close to the size of the file
  uint64_t linked_bytes = 0;            // that it shares with the checkpoint instead
};

/// A program on its way to an engine: read, given its weights, lowered, verified and laid out; nothing is written
/// before write(). Each backend derives its own class.
class Export {
 public:
  virtual ~Export() = default;

  const ExportDestination& destination() const { return destination_; }
  const std::string& model_class() const { return model_class_; }
  const std::vector<ExportFile>& files() const { return files_; }
  /// What write() writes.
  uint64_t total_bytes() const;
  /// What callers may expect to vary but the capture fixed, a line each.
  const std::vector<std::string>& fixed_dims() const { return fixed_dims_; }
  /// The sizes for which graphs are correct, where not for all, a line each.
  const std::vector<std::string>& limits() const { return limits_; }
  /// What else users want to know of it, a line each.
  virtual std::vector<std::string> summary() const { return {}; }
  /// Writes the files, under their names, into an empty folder. `progress` may be called with growing numbers of bytes.
  virtual Status write_into(const std::filesystem::path& folder, const ExportWriteOptions& options,
                            const std::function<void(uint64_t done)>& progress) const = 0;
  /// Writes anew, into that folder, what tells of checks.
  virtual Status rewrite_checks(const std::filesystem::path& /*folder*/, const ExportWriteOptions& /*options*/) const {
    return {};
  }
  /// Streams all files. They appear together, complete, or not at all; an earlier export is replaced, unless users have
  /// put something there since: then it stays as it is.
  Status write(const ExportWriteOptions& options) const;

 protected:
  /// `capture` is capture.json. The checkpoint must outlive it.
  Export(ExportDestination destination, const Checkpoint* checkpoint, JsonView capture);
  void note_fixed_dims(const Program& program);

  /// Whether a file of an export to one file may be written in its place.
  Status check_file(const std::string& file) const;

  ExportDestination destination_;
  std::string model_class_;
  std::vector<ExportFile> files_;
  std::vector<std::string> fixed_dims_, limits_;

 private:
  void warn_of_non_finite(const ExportWriteOptions& options) const;

  const Checkpoint* checkpoint_;
};

}  // namespace argosy
