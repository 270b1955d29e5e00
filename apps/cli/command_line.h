#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace argosy::cli {

struct CommandLine {
  GlobalOptions global;
  CommandOptions command;
};

/// Both spellings of a flag's words, --use_custom_sdpa and --use-custom-sdpa, as the one with dashes. Values stay as
/// they are.
std::vector<std::string> with_dashes(std::vector<std::string> arguments);

/// The parsed command line; or, in `exit_code`, how to end at once: help and version were printed to stdout, or what is
/// wrong to stderr.
std::optional<CommandLine> parse_command_line(std::vector<std::string> arguments, int& exit_code);

}  // namespace argosy::cli
