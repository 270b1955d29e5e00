#include "program.h"

#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/system.h"
#include "base/text.h"
#include "command_line.h"
#include "commands.h"
#include "registry.h"

namespace argosy::cli {
namespace {

/// What the command line says of a registry; null: nothing.
const RegistryOptions* registry_of(const CommandOptions& command) {
  if (const auto* options = std::get_if<CaptureOptions>(&command)) return &options->registry;
  if (const auto* options = std::get_if<WeightsOptions>(&command)) return &options->registry;
  if (const auto* options = std::get_if<ExportOptions>(&command)) return &options->registry;
  if (const auto* options = std::get_if<CacheOptions>(&command)) return &options->registry;
  return nullptr;
}

int run(const CommandLine& command_line, Terminal& terminal) {
  Environment environment = read_environment();
  if (const RegistryOptions* options = registry_of(command_line.command))
    environment = with_registry(environment, *options);
  if (const auto* options = std::get_if<InspectOptions>(&command_line.command)) {
    return run_inspect(*options, environment, terminal);
  }
  if (const auto* options = std::get_if<ExplainOptions>(&command_line.command)) return run_explain(*options, terminal);
  if (const auto* options = std::get_if<OptOptions>(&command_line.command)) {
    return options->golden.empty() ? run_opt(*options, environment, terminal) : run_golden_files(*options, terminal);
  }
  if (const auto* options = std::get_if<ReplayOptions>(&command_line.command)) return run_replay(*options, terminal);
  if (const auto* options = std::get_if<CaptureOptions>(&command_line.command)) {
    return run_capture(*options, environment, terminal);
  }
  if (const auto* options = std::get_if<CacheOptions>(&command_line.command)) {
    return run_cache(*options, environment, terminal);
  }
  if (const auto* options = std::get_if<WeightsOptions>(&command_line.command)) {
    return run_weights(*options, environment, terminal);
  }
  if (const auto* options = std::get_if<ExportOptions>(&command_line.command)) {
    return run_export(*options, environment, terminal);
  }
  if (const auto* options = std::get_if<CheckOptions>(&command_line.command)) {
    return run_check(*options, environment, command_line.global, terminal);
  }
  if (const auto* options = std::get_if<RunOptions>(&command_line.command)) {
    return run_run(*options, environment, terminal);
  }
  if (const auto* options = std::get_if<PushOptions>(&command_line.command)) {
    return run_push(*options, environment, terminal);
  }
  if (const auto* options = std::get_if<SweepOptions>(&command_line.command)) {
    return run_sweep(*options, environment, command_line.global, terminal);
  }
  if (const auto* options = std::get_if<LintOptions>(&command_line.command)) {
    return run_lint(*options, environment, terminal);
  }
  return run_doctor(std::get<DoctorOptions>(command_line.command), environment, terminal);
}

}  // namespace

int run_program(int count, char** values, const ExportHooks* hooks) {
  int exit_code = kUsage;
  auto command_line = parse_command_line(std::vector<std::string>(values + 1, values + count), exit_code);
  if (!command_line) return exit_code;
  if (auto* options = std::get_if<ExportOptions>(&command_line->command)) options->backend_options.set_hooks(hooks);
  command_line->global.colours = wants_colours();
  Terminal terminal(command_line->global);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that a limit does not allow is then an error like any other
  auto seconds = [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  try {
    int result = run(*command_line, terminal);
    terminal.log(LogLevel::kInfo,
                 format("took {:.3f} s, peak memory {}", seconds(), format_bytes(system::peak_rss_bytes())));
    return terminal.print_summary(result, seconds());
  } catch (const InternalError& error) {
    terminal.print_error({ErrorCode::kInternal, error.what(), "this is a bug in argosy; please report it"});
  } catch (const std::bad_alloc&) {
    terminal.print_error({ErrorCode::kIo, "out of memory", "the file asks for more than this machine has"});
  } catch (const std::exception& error) {
    terminal.print_error({ErrorCode::kInternal, error.what(), "this is a bug in argosy; please report it"});
  }
  return terminal.print_summary(kFailed, seconds());
}

}  // namespace argosy::cli
