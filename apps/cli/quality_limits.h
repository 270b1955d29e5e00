#pragma once

#include "base/result.h"
#include "check.h"
#include "driver/backends.h"
#include "export_jobs.h"

namespace argosy::cli {

/// Refuses an export that costs more than the user allows, by what its check measured. One that stores all digits costs
/// nothing.
Status check_quality(const CheckOutcome& outcome, const ExportJob& job, const Backend& backend);

}  // namespace argosy::cli
