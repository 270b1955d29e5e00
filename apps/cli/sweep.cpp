#include "base/system.h"
#include "base/text.h"
#include "cache/check_report.h"
#include "commands.h"
#include "python.h"
#include "subprocess.h"

namespace argosy::cli {

int run_sweep(const SweepOptions& options, const Environment& environment, const GlobalOptions& global,
              Terminal& terminal) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty()) {
    terminal.print_error(Error{ErrorCode::kNotFound, "there is no Python to run jobs with",
                               "install Python with argosy, torch and transformers, or name it by ARGOSY_PYTHON"});
    return kFailed;
  }
  // Values behind "=": one that begins with a dash is no option.
  std::vector<std::string> command = {pythons[0], "-m", "argosy.sweep", "--program=" + system::own_program(),
                                      format("--sources={}", source_hash())};
  if (!options.output.empty()) command.push_back("--output=" + options.output);
  if (options.jobs > 0) command.push_back(format("--jobs={}", options.jobs));
  if (options.seconds >= 0) command.push_back(format("--seconds={}", options.seconds));
  if (options.memory >= 0) command.push_back(format("--memory={}", options.memory));
  if (options.disk > 0) command.push_back(format("--disk={}", options.disk));
  command.push_back(format("--retries={}", options.retries));
  if (options.retries_failed) command.emplace_back("--retry-failed");
  if (options.discard) command.emplace_back("--discard");
  if (!options.shard.empty()) command.push_back("--shard=" + options.shard);
  if (options.uses_ray) command.push_back("--ray=" + options.ray);
  for (const std::string& folder : options.reported) command.push_back("--report=" + folder);
  if (!options.compared.empty()) command.push_back("--compare=" + options.compared);
  if (global.progress == ProgressMode::kJson) command.emplace_back("--progress=json");
  if (global.progress == ProgressMode::kOff) command.emplace_back("--progress=off");
  if (terminal.wants_json()) command.emplace_back("--json");
  command.insert(command.end(), {"--", options.jobs_file});
  become(command);  // so that whoever ends this process ends the sweep
  terminal.print_error(Error{ErrorCode::kIo, format("{} cannot be started", pythons[0]),
                             "check that it is a Python interpreter; ARGOSY_PYTHON names another"});
  return kFailed;
}

}  // namespace argosy::cli
