#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "passes/pipeline.h"

namespace argosy {

/// What developers may want of the passes of a command; nothing by default.
struct WatchOptions {
  std::filesystem::path dump_dir;       // the program after each pass, as numbered files of IR text; empty: none
  std::vector<std::string> dump_after;  // only after passes of these names; empty: after all
  bool verify_each = false;             // after every pass that changed something
  std::filesystem::path repro_dir;      // where a failing pass leaves its reproducer; empty: nowhere
  bool only_bugs = false;               // a reproducer of our own bugs alone, not of what users can mend
};

/// Watches pipelines that run one after the other.
class Watch {
 public:
  explicit Watch(WatchOptions options) : options_(std::move(options)) {}

  /// For one pipeline; must not outlive this.
  PipelineHooks hooks();
  /// The first dump that could not be written.
  const Status& dump_status() const { return dump_status_; }
  /// "reproducer: x.repro/  (argosy replay x.repro)", or why none was written; empty if no pass failed.
  std::string failure_text() const;

 private:
  void dump(const std::string& pass, const Program& program);

  WatchOptions options_;
  size_t passes_ = 0;
  Status dump_status_;
  std::optional<Status> reproducer_;
};

}  // namespace argosy
