#pragma once

#include "driver/backends.h"
#include "export_jobs.h"
#include "terminal.h"

namespace argosy::cli {

/// Whether values are to be seen for it.
bool sees_values(const ExportJob& job);

/// If the user names what to calibrate on, has the model read it in float32. For variants of mixed float16: by
/// `python -m argosy.check.seen`, and gives the job how large values became; the float32 graphs are for a time beside
/// the destination. For layers of integers (8a8w): by `python -m argosy.check.ranges`.
Status see_values(const ExportJobs& jobs, const Backend& backend, const ExportDestination& destination,
                  const Environment& environment, Terminal& terminal);

}  // namespace argosy::cli
