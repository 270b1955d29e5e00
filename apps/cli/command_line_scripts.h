#pragma once

#include <string>

#include "command_line_parts.h"

namespace argosy::cli {

/// What a shell needs to complete commands, options and their values: a script for "bash", "zsh" or "fish", made of
/// the tables that the command line is parsed by.
std::string completion_script(const CLI::App& app, const std::string& shell);

/// The manual page, in roff for man(1), of the same texts as --help.
std::string man_page(const CLI::App& app);

}  // namespace argosy::cli
