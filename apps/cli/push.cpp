#include "base/system.h"
#include "base/text.h"
#include "commands.h"
#include "python.h"
#include "subprocess.h"

namespace argosy::cli {

int run_push(const PushOptions& options, const Environment& environment, Terminal& terminal) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty()) {
    terminal.print_error(Error{ErrorCode::kNotFound, "there is no Python to talk to the Hub with",
                               "install Python with argosy and huggingface_hub, or name it by ARGOSY_PYTHON"});
    return kFailed;
  }
  // Values behind "=": one that begins with a dash is no option.
  std::vector<std::string> command = {pythons[0], "-m", "argosy.push", "--program=" + system::own_program()};
  if (!options.revision.empty()) command.push_back("--revision=" + options.revision);
  if (options.is_private) command.emplace_back("--private");
  if (options.all_files) command.emplace_back("--all-files");
  if (options.dry_run) command.emplace_back("--dry-run");
  if (terminal.wants_json()) command.emplace_back("--json");
  command.insert(command.end(), {"--", options.folder, options.repository});
  if (auto exit_code = run_through(command)) {
    terminal.summary().leave();
    return *exit_code;
  }
  terminal.print_error(Error{ErrorCode::kIo, format("{} cannot be started", pythons[0]),
                             "check that it is a Python interpreter; ARGOSY_PYTHON names another"});
  return kFailed;
}

}  // namespace argosy::cli
