#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "command_line_parts.h"

namespace argosy::cli {

/// The one of `names` that `word` was probably meant to be: at most a third of its letters are others, left out, added
/// or exchanged with their neighbours. Empty: none.
std::string meant(std::string_view word, const std::vector<std::string>& names);

/// The first command or option among the arguments that the program does not know, and what it may have been meant to
/// be; none: all are known, and something else is wrong.
std::optional<Error> unknown_word(const CLI::App& app, const std::vector<std::string>& arguments);

/// What CLI11 found wrong, in our words.
Error usage_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments);

}  // namespace argosy::cli
