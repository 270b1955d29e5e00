#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace argosy::cli {

/// The full path of a program on PATH; nullopt if there is none.
std::optional<std::string> find_program(const std::string& name);

/// The full path of a program in the folder of this one; nullopt if there is none.
std::optional<std::string> find_beside(const std::string& name);

/// What a program writes to stdout; nullopt if it cannot be started, fails, writes more than a megabyte, or takes
/// longer than the timeout (it is then killed). stdin and stderr are closed to it.
std::optional<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds timeout);

}  // namespace argosy::cli
