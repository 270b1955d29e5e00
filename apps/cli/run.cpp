#include "base/text.h"
#include "commands.h"
#include "python.h"
#include "subprocess.h"

namespace argosy::cli {

int run_run(const RunOptions& options, const Environment& environment, Terminal& terminal) {
  std::vector<std::string> pythons = candidate_pythons(environment);
  if (pythons.empty()) {
    terminal.print_error(Error{ErrorCode::kNotFound, "there is no Python to start the engine with",
                               "install Python with argosy and the engine, or name it by ARGOSY_PYTHON"});
    return kFailed;
  }
  // Values behind "=": one that begins with a dash is no option.
  std::vector<std::string> command = {pythons[0], "-m", "argosy.run"};
  if (!options.variant.empty()) command.push_back("--variant=" + options.variant);
  if (!options.adapter.empty()) command.push_back("--adapter=" + options.adapter);
  if (!options.prompt.empty()) command.push_back("--prompt=" + options.prompt);
  if (!options.system.empty()) command.push_back("--system=" + options.system);
  for (const std::string& file : options.images) command.push_back("--image=" + file);
  for (const std::string& file : options.audios) command.push_back("--audio=" + file);
  command.push_back(format("--max-new-tokens={}", options.max_new_tokens));
  if (options.temperature != 0) command.push_back(format("--temperature={}", options.temperature));
  if (options.top_k > 0) command.push_back(format("--top-k={}", options.top_k));
  if (options.top_p >= 0) command.push_back(format("--top-p={}", options.top_p));
  if (options.seed >= 0) command.push_back(format("--seed={}", options.seed));
  if (options.raw) command.emplace_back("--raw");
  if (terminal.wants_json()) command.emplace_back("--json");
  command.insert(command.end(), {"--", options.bundle});
  if (auto exit_code = run_through(command, options.prompt == "-" ? Input::kOwn : Input::kNone)) {
    terminal.summary().leave();
    return *exit_code;
  }
  terminal.print_error(Error{ErrorCode::kIo, format("{} cannot be started", pythons[0]),
                             "check that it is a Python interpreter; ARGOSY_PYTHON names another"});
  return kFailed;
}

}  // namespace argosy::cli
