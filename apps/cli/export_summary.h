#pragma once

#include <string>
#include <vector>

#include "driver/backends.h"
#include "export_jobs.h"
#include "terminal.h"

namespace argosy::cli {

/// "Verified on a small random-weight copy.", or why not.
std::string verified_in_words(const std::vector<ExportCheck>& checks);

/// What a user does next with what was exported: a command that works, whatever the model.
std::string next_step(const Export& prepared, const ExportJobs& jobs, const Backend& backend);

/// What was written, how it was checked, and what to do next. `writing`, `all`: seconds.
void print_summary(const Export& prepared, const ExportJobs& jobs, const std::vector<ExportCheck>& checks,
                   const Backend& backend, double writing, double all, Terminal& terminal);

/// The same for scripts.
void write_summary(const Export& prepared, const ExportJobs& jobs, const std::vector<ExportCheck>& checks,
                   const Backend& backend, double writing, JsonWriter& writer);

/// The files that an export writes, or would: "files" and "total_bytes".
void write_files(const Export& prepared, JsonWriter& writer);

}  // namespace argosy::cli
