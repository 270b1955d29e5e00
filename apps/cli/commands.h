#pragma once

#include "options.h"
#include "terminal.h"

namespace argosy::cli {

// One function per subcommand; each returns the program's exit code and has reported what went wrong.
int run_inspect(const InspectOptions& options, const Environment& environment, Terminal& terminal);
int run_explain(const ExplainOptions& options, Terminal& terminal);
int run_opt(const OptOptions& options, const Environment& environment, Terminal& terminal);
int run_golden_files(const OptOptions& options, Terminal& terminal);  // opt --golden
int run_replay(const ReplayOptions& options, Terminal& terminal);
int run_capture(const CaptureOptions& options, const Environment& environment, Terminal& terminal);
int run_cache(const CacheOptions& options, const Environment& environment, Terminal& terminal);
int run_weights(const WeightsOptions& options, const Environment& environment, Terminal& terminal);
int run_export(ExportOptions options, const Environment& environment, Terminal& terminal);
int run_check(const CheckOptions& options, const Environment& environment, const GlobalOptions& global,
              Terminal& terminal);
int run_run(const RunOptions& options, const Environment& environment, Terminal& terminal);
int run_push(const PushOptions& options, const Environment& environment, Terminal& terminal);
int run_sweep(const SweepOptions& options, const Environment& environment, const GlobalOptions& global,
              Terminal& terminal);
int run_lint(const LintOptions& options, const Environment& environment, Terminal& terminal);
int run_doctor(const DoctorOptions& options, const Environment& environment, Terminal& terminal);

}  // namespace argosy::cli
