#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/backends.h"
#include "options.h"
#include "python.h"
#include "terminal.h"

namespace argosy::cli {

/// An export, or one of its variants: what is asked for, the model's files as far as they are there, and the work by
/// which Python makes what is missing.
struct ExportJob {
  std::string variant;                 // a name of driver/variants.h; empty: it is the only one
  std::optional<ExportCheck> earlier;  // of a variant that the output has already, and that stays as it is
  ExportOptions options;               // with dtype and quantisation of the variant
  CaptureRequest request;
  Checkpoint checkpoint;
  PythonWork capture_work, plan_work;
  // Once they are obtained:
  std::filesystem::path capture;
  WeightPlan plan;
};

/// The jobs do not move: exports point to their checkpoints.
using ExportJobs = std::vector<std::unique_ptr<ExportJob>>;

/// At least one. If variants are added, those of the destination come first.
Result<ExportJobs> find_jobs(const ExportOptions& options, const Backend& backend, const ExportDestination& destination,
                             const Environment& environment, Terminal& terminal);

/// Captures and plans: files that the user names, else the cache's; made if it has none.
Status obtain_captures(const ExportJobs& jobs, const Environment& environment, Terminal& terminal);

/// Reads the captures and lowers them; nothing is written.
Result<std::unique_ptr<Export>> prepare(const ExportJobs& jobs, const Backend& backend,
                                        const ExportDestination& destination, Diagnostics& diagnostics);

}  // namespace argosy::cli
